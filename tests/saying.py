"""Command lines and files with settings, understood as a start does it: with the settings of every feature."""

from functools import partial

from claudebox.features.table import SETTINGS
from claudebox.settings import documents, files, words
from claudebox.settings import gather as gathering

parse = partial(words.parse, SETTINGS)
gather = partial(gathering.gather, SETTINGS)
from_options = partial(gathering.from_options, SETTINGS)
from_variables = partial(gathering.from_variables, SETTINGS)
list_profiles = partial(files.list_profiles, SETTINGS)
parse_file = partial(documents.parse, SETTINGS)
