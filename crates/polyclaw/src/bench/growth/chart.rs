//! Draws cost curves as SVG. Both scales are logarithmic: linear growth is a rising straight line, and constant cost
//! is level.

use std::fmt::Write as _;

use super::CostCurve;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
/// Range of each scale, in powers of ten.
const AMOUNT_EXPONENTS: (i32, i32) = (0, 5);
const COST_EXPONENTS: (i32, i32) = (-1, 2);
/// Curves differ in color and in dashes, so that they are distinct in print.
const CURVE_STYLES: [(&str, &str); 5] = [
    ("#2563eb", "none"),
    ("#dc2626", "6 3"),
    ("#059669", "2 3"),
    ("#d97706", "10 4"),
    ("#7c3aed", "8 3 2 3"),
];

/// Draws each curve relative to its first point.
pub fn draw_chart(curves: &[CostCurve]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    draw_axes(&mut svg);
    for (at, (curve, look)) in curves.iter().zip(CURVE_STYLES).enumerate() {
        draw_curve(&mut svg, curve, look);
        draw_legend(&mut svg, curve, look, at);
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(amount: f64) -> f64 {
    let (from, to) = (f64::from(AMOUNT_EXPONENTS.0), f64::from(AMOUNT_EXPONENTS.1));
    LEFT + (amount.log10() - from) / (to - from) * (WIDTH - LEFT - RIGHT)
}

fn y(times: f64) -> f64 {
    let (from, to) = (f64::from(COST_EXPONENTS.0), f64::from(COST_EXPONENTS.1));
    HEIGHT - BOTTOM - (times.log10().clamp(from, to) - from) / (to - from) * (HEIGHT - TOP - BOTTOM)
}

fn draw_axes(svg: &mut String) {
    let (low, high) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for power in AMOUNT_EXPONENTS.0..=AMOUNT_EXPONENTS.1 {
        let at = x(10_f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{low}\" stroke=\"#e5e7eb\"/>");
        let amount = 10_u32.pow(power.unsigned_abs());
        let _ =
            writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{amount}</text>", low + 18.0);
    }
    for power in COST_EXPONENTS.0..=COST_EXPONENTS.1 {
        let at = y(10_f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{high}\" stroke=\"#e5e7eb\"/>");
        let times = 10_f64.powi(power);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{times}×</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"18\">cost relative to the first point</text>");
    let _ = writeln!(
        svg,
        "<text x=\"{high}\" y=\"{}\" text-anchor=\"end\">number of items</text>",
        HEIGHT - 12.0
    );
}

fn draw_curve(svg: &mut String, curve: &CostCurve, (colour, dashes): (&str, &str)) {
    let Some((_, first)) = curve.points.first() else { return };
    #[expect(clippy::cast_precision_loss, reason = "amounts are small")]
    let at = |(amount, cost): &(usize, f64)| (x(*amount as f64), y(cost / first));
    let points: Vec<String> = curve.points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>",
        points.join(" ")
    );
}

fn draw_legend(svg: &mut String, curve: &CostCurve, (colour, dashes): (&str, &str), at: usize) {
    let (left, top) = (WIDTH - RIGHT + 16.0, TOP + 20.0 + 44.0 * f64::from(u16::try_from(at).unwrap_or(0)));
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}h30\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
         <text x=\"{}\" y=\"{}\">{}</text>",
        left + 36.0,
        top + 4.0,
        curve.name
    );
    if let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" fill=\"#6b7280\">{:.2} → {:.2} {}</text>",
            left + 36.0,
            top + 20.0,
            first.1,
            last.1,
            curve.unit.replace("us", "µs")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_draws_growing_cost_rising_and_constant_cost_level() {
        let curve = |name, points: &[(usize, f64)]| CostCurve { name, unit: "ms", points: points.to_vec() };
        let svg = draw_chart(&[
            curve("level", &[(10, 2.0), (1_000, 2.0)]),
            curve("grows", &[(10, 1.0), (1_000, 100.0)]),
        ]);
        let ends: Vec<Vec<f64>> = svg
            .lines()
            .filter_map(|line| line.strip_prefix("<polyline points=\"")?.split('"').next())
            .map(|points| {
                points.split(' ').filter_map(|point| point.split_once(',')?.1.parse().ok()).collect()
            })
            .collect();
        assert_eq!(ends.len(), 2);
        assert!((ends[0][0] - ends[0][1]).abs() < 0.1, "{ends:?}");
        assert!(
            (ends[1][1] - TOP).abs() < 0.1 && ends[1][0] > ends[1][1],
            "a hundred times as much: {ends:?}"
        );
    }
}
