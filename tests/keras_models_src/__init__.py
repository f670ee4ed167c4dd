"""Small models of Keras, layer by layer, from which ``tools/make_keras_models.py`` makes files."""

from keras_models_src import operations, plain, rarer, through_time, whole, words
from keras_models_src.book import Family

FAMILIES: list[Family] = [
    *plain.FAMILIES,
    *through_time.FAMILIES,
    *operations.FAMILIES,
    *whole.FAMILIES,
    *words.FAMILIES,
    *rarer.FAMILIES,
]
