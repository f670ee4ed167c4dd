/*
 * FarmHash's Fingerprint64 of many texts, as ``kernels/values/fingerprints.py`` says it for one.  Compiled once, for
 * machines whose least byte comes first.
 */

#include <stdint.h>
#include <string.h>

#include "kinds.h"

#define K0 0xC3A5C85C97CB3127u
#define K1 0xB492B66FBE98F273u
#define K2 0x9AE16A3B2F90404Fu

typedef struct {
  uint64_t first, second;
} Pair;

static inline uint64_t word(const uint8_t *text) {
  uint64_t found;
  memcpy(&found, text, sizeof found);
  return found;
}

static inline uint64_t half_word(const uint8_t *text) {
  uint32_t found;
  memcpy(&found, text, sizeof found);
  return found;
}

static inline uint64_t right(uint64_t x, int count) { return x >> count | x << (64 - count); }

static inline uint64_t shift_mix(uint64_t x) { return x ^ x >> 47; }

static inline uint64_t mix(uint64_t u, uint64_t v, uint64_t mul) {
  return shift_mix((v ^ shift_mix((u ^ v) * mul)) * mul) * mul;
}

static uint64_t of_0_to_16(const uint8_t *text, uint64_t size) {
  uint64_t mul = K2 + 2 * size;
  if (size >= 8) {
    uint64_t first = word(text) + K2, last = word(text + size - 8);
    return mix(right(last, 37) * mul + first, (right(first, 25) + last) * mul, mul);
  }
  if (size >= 4) return mix(size + (half_word(text) << 3), half_word(text + size - 4), mul);
  if (size == 0) return K2;
  uint64_t y = text[0] + ((uint64_t)text[size >> 1] << 8), z = size + ((uint64_t)text[size - 1] << 2);
  return shift_mix(y * K2 ^ z * K0) * K2;
}

static uint64_t of_17_to_64(const uint8_t *text, uint64_t size) {
  uint64_t mul = K2 + 2 * size, a = word(text) * (size <= 32 ? K1 : K2), b = word(text + 8);
  uint64_t c = word(text + size - 8) * mul, d = word(text + size - 16) * K2;
  uint64_t y = right(a + b, 43) + right(c, 30) + d, z = mix(y, a + right(b + K2, 18) + c, mul);
  if (size <= 32) return z;
  uint64_t e = word(text + 16) * mul, f = word(text + 24);
  uint64_t g = (y + word(text + size - 32)) * mul, h = (z + word(text + size - 24)) * mul;
  return mix(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, mul);
}

/* 32 bytes and two words as two words. */
static Pair weak(const uint8_t *text, uint64_t a, uint64_t b) {
  a += word(text);
  b = right(b + a + word(text + 24), 21);
  uint64_t c = a;
  a += word(text + 8) + word(text + 16);
  b += right(a, 44);
  return (Pair){a + word(text + 24), b + c};
}

static uint64_t of_more(const uint8_t *text, uint64_t size) {
  uint64_t x = 81 * K2 + word(text), y = 81 * K1 + 113, z = shift_mix(y * K2 + 113) * K2, mul = K1;
  Pair v = {0, 0}, w = {0, 0};
  uint64_t whole = (size - 1) / 64 * 64, last = size - 64;
  for (uint64_t at = 0;; at = at + 64 < whole ? at + 64 : last) {
    /* The last 64 bytes, of which some may have come before, are mixed in another way. */
    int is_last = at == last && at + 64 > whole;
    uint64_t times = is_last ? 9 : 1;
    if (is_last) {
      mul = K1 + ((z & 0xFF) << 1);
      w.first += (size - 1) & 63;
      v.first += w.first;
      w.first += v.first;
    }
    x = right(x + y + v.first + word(text + at + 8), 37) * mul ^ w.second * times;
    y = right(y + v.second + word(text + at + 48), 42) * mul + v.first * times + word(text + at + 40);
    z = right(z + w.first, 33) * mul;
    v = weak(text + at, v.second * mul, x + w.first);
    w = weak(text + at + 32, z + w.second, y + word(text + at + 16));
    uint64_t other = z;
    z = x;
    x = other;
    if (is_last) break;
  }
  uint64_t first = mix(v.first, w.first, mul) + shift_mix(y) * K0 + z;
  return mix(first, mix(v.second, w.second, mul) + x, mul);
}

/* The fingerprints of ``count`` texts, which stand one after the other and have so many bytes each. */
PUBLIC void penstock_fingerprints(const uint8_t *texts, const int64_t *sizes, int64_t count, uint64_t *result) {
  for (int64_t i = 0; i < count; texts += sizes[i++]) {
    uint64_t size = (uint64_t)sizes[i];
    result[i] = size <= 16 ? of_0_to_16(texts, size) : size <= 64 ? of_17_to_64(texts, size) : of_more(texts, size);
  }
}
