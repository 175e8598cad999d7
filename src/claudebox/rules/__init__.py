"""Pure decisions: facts and settings in, parts of the Plan out."""
