//! Half-precision numbers, stored as 16 bits in files and in the cache.

pub(super) fn to_f32(half: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(half >> 15) << 31, (half >> 10) & 31, u32::from(half & 1023));
    match exponent {
        // Subnormal: only the fraction counts, in steps of 2^-24.
        0 => {
            let size = fraction as f32 / 16_777_216.0;
            if sign == 0 { size } else { -size }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((u32::from(exponent) + 112) << 23) | (fraction << 13)),
    }
}

/// Rounds to nearest, ties to even, like the processor's instruction.
pub(super) fn from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let size = bits & 0x7fff_ffff;
    if size >= 0x7f80_0000 {
        let not_a_number = if size > 0x7f80_0000 { 0x0200 } else { 0 };
        return sign | 0x7c00 | not_a_number;
    }
    if size < 0x3880_0000 {
        // Adding 0.5 aligns the steps of 2^-24 with the end of the fraction, and the addition rounds.
        let moved = f32::from_bits(size) + 0.5;
        return sign | (moved.to_bits() - 0.5_f32.to_bits()) as u16;
    }
    let rounded = size + 0xfff + ((size >> 13) & 1);
    if rounded >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_round_trip_through_f32() {
        for half in 0..=u16::MAX {
            let value = to_f32(half);
            if value.is_nan() {
                assert!(to_f32(from_f32(value)).is_nan());
            } else {
                assert_eq!(from_f32(value), half, "{half:#06x} is {value}");
            }
        }
    }

    #[test]
    fn known_half_float_values_convert() {
        for (half, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 5.960_464_5e-8)] {
            assert_eq!(to_f32(half), value);
        }
        assert_eq!(from_f32(65520.0), 0x7c00, "too large is infinite");
        assert_eq!(from_f32(1.0 + 1.0 / 2048.0), 0x3c00, "a half rounds to even");
    }
}
