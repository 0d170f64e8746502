"""What a compaction retained and lost: its own selection of what matters, the search for it, and the score.

It shares the parsing of transcripts with the compactors, never their selections: an extractor that decided what the
audit looks for would always score full marks.
"""
