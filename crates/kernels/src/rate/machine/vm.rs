//! The stack machine.

/// A bytecode with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Push(i32),
    Load(u16),
    Store(u16),
    Fetch,
    Put,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    Left,
    Right,
    Less,
    LessOrSame,
    Same,
    Jump(u32),
    JumpUnless(u32),
    /// Calls the function at this place with this number of arguments.
    Call(u32, u8),
    /// Makes space for this many further variables.
    Enter(u16),
    Return,
    Drop,
    Halt,
}

const STACK: usize = 1 << 14;
const MEMORY: usize = 1 << 15;

#[derive(Clone, Copy, Default)]
struct Frame {
    back: u32,
    base: u32,
}

pub struct Machine {
    stack: Box<[i64; STACK]>,
    memory: Box<[i64; MEMORY]>,
    frames: Box<[Frame; STACK]>,
}

impl Machine {
    pub fn new() -> Machine {
        Machine {
            stack: Box::new([0; STACK]),
            memory: Box::new([0; MEMORY]),
            frames: Box::new([Frame::default(); STACK]),
        }
    }
    pub fn bytes(&self) -> u64 {
        (size_of_val(&*self.stack) + size_of_val(&*self.memory) + size_of_val(&*self.frames)) as u64
    }

    /// Runs a program; returns its result for `argument` and the number of bytecodes executed.
    /// Every program stays inside the arrays, because indices wrap around.
    #[inline(always)]
    #[expect(clippy::too_many_lines, reason = "an arm for each bytecode")]
    pub fn run(&mut self, code: &[Op], argument: i64) -> (i64, u64) {
        let Machine { stack, memory, frames } = self;
        memory.fill(0);
        stack[0] = argument;
        // The topmost value stays in a register.
        let mut top = argument;
        let (mut at, mut base, mut height, mut depth, mut steps) = (0usize, 0usize, 1usize, 0usize, 0u64);
        macro_rules! two {
            ($one:ident, $other:ident => $result:expr) => {{
                height = height.wrapping_sub(1);
                let ($one, $other) = (stack[height.wrapping_sub(1) % STACK], top);
                top = $result;
            }};
        }
        // The values below `top` have indices below `height - 1`.
        macro_rules! push {
            ($value:expr) => {{
                stack[height.wrapping_sub(1) % STACK] = top;
                height = height.wrapping_add(1);
                top = $value;
            }};
        }
        macro_rules! pop {
            () => {{
                let value = top;
                height = height.wrapping_sub(1);
                top = stack[height.wrapping_sub(1) % STACK];
                value
            }};
        }
        while let Some(op) = code.get(at) {
            at += 1;
            steps += 1;
            match *op {
                Op::Push(value) => push!(i64::from(value)),
                Op::Load(slot) => {
                    stack[height.wrapping_sub(1) % STACK] = top;
                    height = height.wrapping_add(1);
                    top = stack[(base + usize::from(slot)) % STACK];
                }
                Op::Store(slot) => {
                    let value = pop!();
                    let place = base + usize::from(slot);
                    stack[place % STACK] = value;
                    if place + 1 == height {
                        top = value;
                    }
                }
                Op::Fetch => top = memory[top as usize % MEMORY],
                Op::Put => {
                    let value = pop!();
                    let place = pop!();
                    memory[place as usize % MEMORY] = value;
                }
                Op::Add => two!(one, other => one.wrapping_add(other)),
                Op::Subtract => two!(one, other => one.wrapping_sub(other)),
                Op::Multiply => two!(one, other => one.wrapping_mul(other)),
                Op::Divide => two!(one, other => one.checked_div(other).unwrap_or(0)),
                Op::Remainder => two!(one, other => one.checked_rem(other).unwrap_or(0)),
                Op::And => two!(one, other => one & other),
                Op::Or => two!(one, other => one | other),
                Op::Xor => two!(one, other => one ^ other),
                Op::Left => two!(one, other => one.wrapping_shl(other as u32)),
                Op::Right => two!(one, other => one.wrapping_shr(other as u32)),
                Op::Less => two!(one, other => i64::from(one < other)),
                Op::LessOrSame => two!(one, other => i64::from(one <= other)),
                Op::Same => two!(one, other => i64::from(one == other)),
                Op::Jump(to) => at = to as usize,
                Op::JumpUnless(to) => {
                    if pop!() == 0 {
                        at = to as usize;
                    }
                }
                Op::Call(to, arguments) => {
                    frames[depth % STACK] = Frame { back: at as u32, base: base as u32 };
                    depth = depth.wrapping_add(1);
                    base = height.wrapping_sub(usize::from(arguments));
                    at = to as usize;
                }
                Op::Enter(variables) => {
                    stack[height.wrapping_sub(1) % STACK] = top;
                    for _ in 0..variables {
                        stack[height % STACK] = 0;
                        height = height.wrapping_add(1);
                    }
                    top = stack[height.wrapping_sub(1) % STACK];
                }
                Op::Return => {
                    depth = depth.wrapping_sub(1);
                    let frame = frames[depth % STACK];
                    // The result replaces the first argument.
                    height = base.wrapping_add(1);
                    (at, base) = (frame.back as usize, frame.base as usize);
                }
                Op::Drop => {
                    pop!();
                }
                Op::Halt => break,
            }
        }
        (top, steps)
    }
}
