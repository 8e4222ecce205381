//! Sums such as `rbx+rcx*4+0x10`, of which tests state addresses.

/// The value of a sum; `value` tells that of a name.
pub fn evaluate(text: &str, value: &dyn Fn(&str) -> u64) -> u64 {
    let mut sum = 0u64;
    let mut rest = text;
    let mut negative = false;
    while !rest.is_empty() {
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |at| at + 1);
        let term = rest[..end].trim_start_matches(['+', '-']);
        let product = term.split('*').fold(1u64, |product, factor| product.wrapping_mul(atom(factor, value)));
        negative |= rest.starts_with('-');
        sum = if negative { sum.wrapping_sub(product) } else { sum.wrapping_add(product) };
        negative = false;
        rest = &rest[end..];
    }
    sum
}

fn atom(text: &str, value: &dyn Fn(&str) -> u64) -> u64 {
    if let Some(name) = text.strip_prefix("low(").and_then(|t| t.strip_suffix(')')) {
        value(name) & 0xffff_ffff
    } else if let Some(digits) = text.strip_prefix("0x") {
        u64::from_str_radix(digits, 16).unwrap()
    } else if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.parse().unwrap()
    } else {
        value(text)
    }
}

#[test]
fn sums_are_evaluated() {
    let value = |name: &str| if name == "a" { 0x1_0000_0010 } else { 3 };
    assert_eq!(evaluate("a+b*4-0x10", &value), 0x1_0000_000c);
    assert_eq!(evaluate("low(a)", &value), 0x10);
    assert_eq!(evaluate("8*b+1", &value), 25);
}
