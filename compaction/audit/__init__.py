"""What a compaction retained and lost: its own selection of what matters, the search for it, and the score.

It shares the parsing of transcripts with the compactors, never their selections: an extractor that decides what the
audit searches for would always score 100 %. Rules that look alike in activity/ are therefore not shared.
"""
