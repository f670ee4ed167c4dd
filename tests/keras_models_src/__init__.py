"""Small models of Keras, layer by layer, from which ``tools/make_keras_models.py`` makes files."""

from keras_models_src import plain
from keras_models_src.book import Family

FAMILIES: list[Family] = [*plain.FAMILIES]
