/* Functions of each element of a vector. */

#ifndef PENSTOCK_FUNCTIONS_H
#define PENSTOCK_FUNCTIONS_H

#include <math.h>

#include "vectors.h"

/* In all of these, comparisons with NaN do not hold, and NaN stays. */
static inline vec maximum(vec a, vec b) { return choose(a != a, a, larger(a, b)); }
static inline vec minimum(vec a, vec b) { return choose(a != a, a, smaller(a, b)); }
static inline vec clip(vec x, float low, float high) { return smaller(all(high), larger(all(low), x)); }

static inline vec root(vec x) {
  for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

/* exp(x + rest), where the rest is small: 2 to some power times a polynomial, whose error is 2^-28. */
static inline vec exp_of_sum(vec x, vec rest) {
  const float to_integer = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded */
  x = clip(x, -104.0f, 89.0f);
  vec shifted = x * all(1.44269504f) + all(to_integer);
  vec power = shifted - all(to_integer);
  /* The logarithm of 2 in two parts, of which the first times the power is exact. */
  vec r = x - power * all(0.693359375f) - power * all(-2.12194440e-4f) + rest;
  vec p = all(0.0013814318226650357f);
  p = p * r + all(0.008368851616978645f);
  p = p * r + all(0.041668400168418884f);
  p = p * r + all(0.1666651964187622f);
  p = p * r + all(0.4999999403953552f);
  p = p * (r * r) + r + all(1.0f);
  /* In two halves, since 2 to the power may be no normal number. */
  mask whole = (mask)shifted - (mask)all(to_integer), half = whole >> 1;
  vec first = (vec)((half + 127) << 23), second = (vec)((whole - half + 127) << 23);
  return p * first * second;
}

static inline vec exp_of(vec x) { return exp_of_sum(x, all(0.0f)); }

/* 2 to a power times (1 plus a polynomial without its constant), less 1, whose error is 2^-31. */
static inline vec expm1_of(vec x) {
  const float to_integer = 12582912.0f;
  vec inside = clip(x, -18.0f, 89.0f);
  vec shifted = inside * all(1.44269504f) + all(to_integer);
  vec power = shifted - all(to_integer);
  vec r = inside - power * all(0.693359375f) - power * all(-2.12194440e-4f);
  vec p = all(0.00019845884526148438f);
  p = p * r + all(0.0013940720818936825f);
  p = p * r + all(0.008333389647305012f);
  p = p * r + all(0.04166635870933533f);
  p = p * r + all(0.1666666567325592f);
  p = p * r + all(0.5f);
  p = p * (r * r) + r;
  mask whole = (mask)shifted - (mask)all(to_integer), half = whole >> 1;
  vec first = (vec)((half + 127) << 23), second = (vec)((whole - half + 127) << 23);
  vec found = p * first * second + (first * second - all(1.0f));
  /* 2 to the 128 is no number, but less than that of it may be one. */
  found = choose(inside > all(88.0f), exp_of(inside), found);
  return choose(r == x, choose(x == all(0.0f), x, p), found);
}

/* log(x) + rest, where the rest is small: x is 2 to some power times 1 + f, and log(1 + f) is f - f^2 / 2 and a
   polynomial times f^3, whose error is 2^-30. */
static inline vec log_of_sum(vec x, vec rest) {
  const float least_normal = 1.17549435e-38f, large = 8388608.0f; /* 2^-126, 2^23 */
  const mask is_tiny = x < all(least_normal);
  vec scaled = choose(is_tiny, x * all(large), x);
  mask bits = (mask)scaled, whole = (bits - 0x3f3504f3) >> 23; /* so that 1 + f is around 1, on a scale of powers */
  vec f = (vec)(bits - (whole << 23)) - all(1.0f);
  vec power = __builtin_convertvector(whole + (is_tiny & -23), vec);
  vec p = all(0.06746601313352585f);
  p = p * f + all(-0.11675640940666199f);
  p = p * f + all(0.11888174712657928f);
  p = p * f + all(-0.12405591458082199f);
  p = p * f + all(0.14219550788402557f);
  p = p * f + all(-0.1666799634695053f);
  p = p * f + all(0.2000211924314499f);
  p = p * f + all(-0.25000008940696716f);
  p = p * f + all(0.3333331346511841f);
  vec square = f * f;
  p = p * (square * f) + power * all(-2.12194440e-4f) + rest - square * all(0.5f) + f;
  vec found = p + power * all(0.693359375f);
  found = choose(x == all(INFINITY), x, found);
  found = choose(x == all(0.0f), all(-INFINITY), found);
  return choose((x < all(0.0f)) | (x != x), all(NAN), found);
}

static inline vec log_of(vec x) { return log_of_sum(x, all(0.0f)); }

/* log(1 + x), with what 1 + x was rounded by. */
static inline vec log1p_of(vec x) {
  vec sum = all(1.0f) + x, lost = (x - (sum - all(1.0f))) / sum;
  lost = choose((sum > all(0.0f)) & (sum < all(INFINITY)), lost, all(0.0f));
  return choose(sum == all(1.0f), x, log_of_sum(sum, lost));
}

/* Beyond the limits, x or exp(x) is so near that more would only lose digits; these are TensorFlow's, which
   depend on the distance of 1 and the next number. */
static inline vec softplus_of(vec x) {
  const float limit = 13.942385f;
  vec power = exp_of(x);
  return choose(x > all(limit), x, choose(x < all(-limit), power, log1p_of(power)));
}

static inline vec elu_of(vec x, float scale, float scale_alpha) {
  return choose(x < all(0.0f), rounded(exp_of(x) - all(1.0f)) * all(scale_alpha), x * all(scale));
}

/* x P(x^2) / Q(x^2), the best such quotient of polynomials of degree 4: its error is 2^-25. */
static inline vec tanh_of(vec x) {
  x = clip(x, -9.02f, 9.02f);
  vec u = x * x;
  vec p = all(1.33178099e-08f), q = all(7.76150218e-07f);
  p = p * u + all(2.05825723e-05f), q = q * u + all(3.28300318e-04f);
  p = p * u + all(3.49398026e-03f), q = q * u + all(2.58708684e-02f);
  p = p * u + all(1.33796729e-01f), q = q * u + all(4.67129882e-01f);
  p = p * u + all(1.0f), q = q * u + all(1.0f);
  return clip(x * p / q, -1.0f, 1.0f);
}

static inline vec sigmoid_of(vec x) { return all(1.0f) / (all(1.0f) + exp_of(-x)); }

/* The tangent, and the polynomials of this and the next, are those of error_function.py. */
static inline vec erf_of(vec x) {
  vec u = clip(x * x, 0.0f, 16.0f);
  vec p = all(5.3331516980392735e-09f);
  p = p * u + all(2.9565661918695696e-08f);
  p = p * u + all(-4.810737209481886e-06f);
  p = p * u + all(8.46557377371937e-05f);
  p = p * u + all(-0.0006149390246719122f);
  p = p * u + all(-0.0001952148595592007f);
  p = p * u + all(0.10276984423398972f);
  p = p * u + all(1.128379225730896f);
  return tanh_of(p * x);
}

static inline vec erfc_of(vec x) {
  vec size = clip(choose(x < all(0.0f), -x, x), 0.0f, 11.0f);
  vec t = size / (size + all(2.0f));
  vec p = all(-0.20606832206249237f);
  p = p * t + all(0.6117709279060364f);
  p = p * t + all(-0.42420756816864014f);
  p = p * t + all(-0.08138060569763184f);
  p = p * t + all(-0.446294367313385f);
  p = p * t + all(0.5444389581680298f);
  p = p * t + all(1.6705716848373413f);
  p = p * t + all(-3.2837860584259033f);
  p = p * t + all(1.7432422637939453f);
  p = p * t + all(1.0f);
  vec leading = (vec)((mask)size & -(1 << 12)), missing = (leading - size) * (leading + size);
  vec found = p / (size + size + all(1.0f)) * exp_of_sum(-(leading * leading), missing);
  return choose(x < all(0.0f), all(2.0f) - found, found);
}

#endif
