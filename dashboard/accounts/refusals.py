"""What the writers of people and rights raise when an act cannot be done; the message is for the person."""


class Refused(Exception):
    """Nothing was changed."""
