//! Whole numbers as options.

/// A number in decimal, or in hexadecimal after `0x`.
pub fn number(text: &str) -> Result<u64, String> {
    number_up_to(text, u64::MAX)
}

/// As [`number`], of 32 bits.
pub fn number32(text: &str) -> Result<u32, String> {
    number_up_to(text, u32::MAX.into()).map(|value| value as u32)
}

fn number_up_to(text: &str, most: u64) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.ok().filter(|value| *value <= most).ok_or_else(|| {
        format!("a whole number from 0 to {most} is allowed, such as 4096 or 0x1000")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_hexadecimal_and_have_to_fit() {
        assert_eq!((number("16"), number("0x10")), (Ok(16), Ok(16)));
        assert_eq!(number32("0xffffffff"), Ok(u32::MAX));
        let refused = number32("0x100000000").expect_err("33 bits");
        assert!(refused.contains("from 0 to 4294967295"), "{refused}");
        assert!(number("-1").is_err() && number("x").is_err() && number("0x").is_err());
    }
}
