//! Questions about modules that compute on the host, and about functions that make tensors.

use super::facts::{self, Fact};
use super::parse::nodes;
use ruff_python_ast::ExprCall;

/// The dtype that an old tensor type makes (`torch.LongTensor`); `None` for other names.
pub fn tensor_dtype(tensor_type: &str) -> Option<&'static str> {
    Some(match tensor_type {
        "Tensor" => "torch.get_default_dtype()",
        "HalfTensor" => "torch.float16",
        "FloatTensor" => "torch.float32",
        "DoubleTensor" => "torch.float64",
        "BoolTensor" => "torch.bool",
        "ByteTensor" => "torch.uint8",
        "CharTensor" => "torch.int8",
        "ShortTensor" => "torch.int16",
        "IntTensor" => "torch.int32",
        "LongTensor" => "torch.int64",
        _ => return None,
    })
}

/// The function that is called, if its module has that fact: `cat` of `torch.cat(parts)`.
pub fn function_of(call: &ExprCall, modules: Fact) -> Option<&str> {
    facts::module(&nodes::dotted(nodes::receiver(call)?)).is(modules).then(|| nodes::name(&call.func))
}

pub fn gives_host_values(module: &str) -> bool {
    facts::module(module).is(Fact::HostFromHost)
        || facts::module(module).is(Fact::HostResults)
        || facts::module(module).is(Fact::Settings)
}

/// Whether the functions of a module compute a host value from a host value.
pub fn computes_on_host(module: &str) -> bool {
    facts::module(module).is(Fact::HostFromHost) || facts::module(module).is(Fact::Generic)
}

/// Whether a function of torch makes a tensor of data that it is given.
pub fn makes_tensor(function: &str) -> bool {
    facts::name(function).is(Fact::Data)
}
