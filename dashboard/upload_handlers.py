"""Where the files of a form are kept while a request is answered."""

from tempfile import SpooledTemporaryFile
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler

IN_MEMORY_BYTES = 256 * 1024  # of each file


class SpooledUploadHandler(FileUploadHandler):
    """Keeps small files in memory, one by one. Django decides for all files of a request together, and opens a
    temporary file for each of a thousand small ones; a process may have only so many open."""

    file: "SpooledTemporaryFile[bytes]"

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.file = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 (closed with the request)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:  # noqa: ARG002 (Django's signature)
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> "UploadedFile[bytes]":
        self.file.seek(0)
        return UploadedFile(
            self.file, self.file_name, self.content_type, file_size, self.charset, self.content_type_extra
        )

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
