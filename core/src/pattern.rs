//! Regular expressions of filters, matched in linear time, so that no expression can stop a program that serves many
//! users.
//!
//! The syntax is that of Wireshark's `matches` (PCRE2 on bytes, case folded for ASCII alone), without what needs
//! backtracking. An unsupported construct is refused with its reason, and never given another meaning.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::{self, Ast, parse::ParserBuilder};

/// Upper bound on the size of a compiled expression. Matching one byte may touch all of it.
const MAX_COMPILED_BYTES: usize = 256 << 10;
/// Upper bound on the nesting of groups.
const MAX_DEPTH: u32 = 64;

/// Compiles the expression, or returns why it is refused.
pub fn compiled(text: &str) -> Result<Regex, String> {
    let mut parser = ParserBuilder::new().nest_limit(MAX_DEPTH).build();
    let tree = parser.parse(text).map_err(|problem| problem.kind().to_string())?;
    if ast::visit(&tree, Possessive).is_err() {
        return Err("possessive repetitions (a++) are not supported".to_string());
    }
    RegexBuilder::new(text)
        .unicode(false)
        .case_insensitive(true)
        .size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_DEPTH)
        .build()
        .map_err(|problem| match problem {
            regex::Error::CompiledTooBig(_) => "it repeats too much".to_string(),
            other => {
                let text = other.to_string();
                let reason = text.lines().last().unwrap_or_default();
                reason.trim_start_matches("error: ").to_string()
            }
        })
}

/// Finds a repetition of a repetition without a group, as in `a++`, which PCRE2 reads as possessive.
struct Possessive;

impl ast::Visitor for Possessive {
    type Output = ();
    type Err = ();

    fn finish(self) -> Result<(), ()> {
        Ok(())
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), ()> {
        match node {
            Ast::Repetition(outer) if matches!(*outer.ast, Ast::Repetition(_)) => Err(()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compiled;

    #[test]
    fn bytes_and_case() {
        let found = compiled("^get /.[^x]$").expect("an expression");
        assert!(found.is_match(b"GET /\xff\xfe"));
        assert!(!found.is_match(b"GET /\n\xfe"));
        assert!(compiled(r"\xff\d").expect("bytes").is_match(b"\xff7"));
    }

    #[test]
    fn what_needs_backtracking_is_refused() {
        for (text, reason) in [
            ("(?=a)", "look-around"),
            (r"(a)\1", "backreferences"),
            ("a++", "possessive"),
            ("((a{1000}){1000}){1000}", "repeats too much"),
            ("(", "unclosed group"),
        ] {
            let why = compiled(text).expect_err(text);
            assert!(why.contains(reason), "{text}: {why}");
        }
        assert!(compiled(r"\++ (a+)+ a+?").is_ok());
    }
}
