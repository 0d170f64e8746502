"""What agent authors ask: may I go on, compact these messages, is my prompt laid out well.

Nothing is stored but the messages of a run with a model.
"""
