//! The compiler: translates text to bytecodes in one pass, by recursive descent and operator
//! precedence.

use super::vm::Op;
use anyhow::{Context, bail, ensure};

struct Compiler<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    code: Vec<Op>,
    functions: Vec<(&'a str, u32, u8)>,
    /// Calls whose addresses are filled in when all functions are known.
    calls: Vec<(usize, &'a str, u8)>,
    variables: Vec<&'a str>,
}

/// Splits text into words, numbers and operators of one or two characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut left = text.trim_start();
    while let Some(first) = left.chars().next() {
        let length = if first.is_alphanumeric() {
            left.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(left.len())
        } else if ["<<", ">>", "<=", ">=", "==", "!="].iter().any(|sign| left.starts_with(sign)) {
            2
        } else {
            first.len_utf8()
        };
        let (token, rest) = left.split_at(length);
        all.push(token);
        left = rest.trim_start();
    }
    all
}

/// Compiles `text`; the bytecodes call `main` with one argument.
pub fn compile(text: &str) -> anyhow::Result<Vec<Op>> {
    let code = vec![Op::Call(0, 1), Op::Halt];
    let calls = vec![(0, "main", 1)];
    let mut compiler =
        Compiler { tokens: tokens(text), at: 0, code, functions: Vec::new(), calls, variables: Vec::new() };
    while compiler.at < compiler.tokens.len() {
        compiler.function()?;
    }
    for (at, name, count) in compiler.calls {
        let found = compiler.functions.iter().find(|function| function.0 == name);
        let (_, to, arguments) = found.with_context(|| format!("no function {name}"))?;
        ensure!(count == *arguments, "{name} takes {arguments} arguments");
        compiler.code[at] = Op::Call(*to, count);
    }
    Ok(compiler.code)
}

impl<'a> Compiler<'a> {
    fn next(&mut self) -> anyhow::Result<&'a str> {
        self.at += 1;
        self.tokens.get(self.at - 1).copied().context("the text ends early")
    }
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }
    fn found(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, token: &str) -> anyhow::Result<()> {
        let next = self.next()?;
        ensure!(next == token, "{next} where {token} should be");
        Ok(())
    }

    fn function(&mut self) -> anyhow::Result<()> {
        self.expect("fn")?;
        let name = self.next()?;
        self.expect("(")?;
        self.variables.clear();
        while !self.found(")") {
            let name = self.next()?;
            self.variables.push(name);
            self.found(",");
        }
        let arguments = self.variables.len();
        self.functions.push((name, self.code.len() as u32, arguments as u8));
        let enter = self.code.len();
        self.code.push(Op::Enter(0));
        self.block()?;
        self.code[enter] = Op::Enter((self.variables.len() - arguments) as u16);
        self.code.extend([Op::Push(0), Op::Return]);
        Ok(())
    }

    fn block(&mut self) -> anyhow::Result<()> {
        self.expect("{")?;
        while !self.found("}") {
            self.statement()?;
        }
        Ok(())
    }

    fn statement(&mut self) -> anyhow::Result<()> {
        if self.found("while") {
            let begin = self.code.len() as u32;
            self.expression(0)?;
            let leave = self.code.len();
            self.code.push(Op::Halt);
            self.block()?;
            self.code.push(Op::Jump(begin));
            self.code[leave] = Op::JumpUnless(self.code.len() as u32);
            return Ok(());
        }
        if self.found("if") {
            self.expression(0)?;
            let skip = self.code.len();
            self.code.push(Op::Halt);
            self.block()?;
            let mut end = skip;
            if self.found("else") {
                end = self.code.len();
                self.code.push(Op::Halt);
                self.code[skip] = Op::JumpUnless(self.code.len() as u32);
                self.block()?;
                self.code[end] = Op::Jump(self.code.len() as u32);
            }
            if end == skip {
                self.code[skip] = Op::JumpUnless(self.code.len() as u32);
            }
            return Ok(());
        }
        if self.found("return") {
            self.expression(0)?;
            self.code.push(Op::Return);
        } else if self.peek() == "m" {
            self.at += 1;
            self.expect("[")?;
            self.expression(0)?;
            self.expect("]")?;
            self.expect("=")?;
            self.expression(0)?;
            self.code.push(Op::Put);
        } else if self.tokens.get(self.at + 1) == Some(&"=") {
            let name = self.next()?;
            self.expect("=")?;
            self.expression(0)?;
            let slot = self.variables.iter().position(|variable| *variable == name).unwrap_or_else(|| {
                self.variables.push(name);
                self.variables.len() - 1
            });
            self.code.push(Op::Store(slot as u16));
        } else {
            self.expression(0)?;
            self.code.push(Op::Drop);
        }
        self.expect(";")
    }

    /// Parses operators that bind tighter than `above`.
    fn expression(&mut self, above: u8) -> anyhow::Result<()> {
        self.operand()?;
        loop {
            let (strength, ops): (u8, &[Op]) = match self.peek() {
                "<" => (1, &[Op::Less]),
                "<=" => (1, &[Op::LessOrSame]),
                ">" => (1, &[Op::LessOrSame, Op::Push(1), Op::Xor]),
                ">=" => (1, &[Op::Less, Op::Push(1), Op::Xor]),
                "==" => (1, &[Op::Same]),
                "!=" => (1, &[Op::Same, Op::Push(1), Op::Xor]),
                "|" => (2, &[Op::Or]),
                "^" => (2, &[Op::Xor]),
                "&" => (3, &[Op::And]),
                "<<" => (4, &[Op::Left]),
                ">>" => (4, &[Op::Right]),
                "+" => (5, &[Op::Add]),
                "-" => (5, &[Op::Subtract]),
                "*" => (6, &[Op::Multiply]),
                "/" => (6, &[Op::Divide]),
                "%" => (6, &[Op::Remainder]),
                _ => return Ok(()),
            };
            if strength <= above {
                return Ok(());
            }
            self.at += 1;
            self.expression(strength)?;
            self.code.extend_from_slice(ops);
        }
    }

    fn operand(&mut self) -> anyhow::Result<()> {
        let token = self.next()?;
        if token == "(" {
            self.expression(0)?;
            return self.expect(")");
        }
        if let Ok(number) = token.parse() {
            self.code.push(Op::Push(number));
            return Ok(());
        }
        if token == "m" && self.found("[") {
            self.expression(0)?;
            self.code.push(Op::Fetch);
            return self.expect("]");
        }
        if self.found("(") {
            let mut count = 0;
            while !self.found(")") {
                self.expression(0)?;
                count += 1;
                self.found(",");
            }
            self.calls.push((self.code.len(), token, count));
            self.code.push(Op::Halt);
            return Ok(());
        }
        let Some(slot) = self.variables.iter().position(|variable| *variable == token) else {
            bail!("no variable {token}");
        };
        self.code.push(Op::Load(slot as u16));
        Ok(())
    }
}
