//! What programs call the modules that compute on the host, and the functions that make tensors.

use crate::verdict::source::parse::nodes;
use ruff_python_ast::ExprCall;

pub use crate::text::Names;

/// Modules that compute host values from host values.
const HOST: Names = Names("np numpy math cmath statistics scipy copy itertools re pd");
/// Further ones whose functions give host values, which say nothing of the arguments.
const HOST_RESULTS: Names =
    Names("os time random json sys logging datetime collections dist argparse cv2 PIL pathlib");
/// Those of the host by their full names, whose functions take a host value through to another.
pub const HOST_THROUGH: Names = Names("math cmath statistics numpy datetime");
/// Libraries whose functions do what they are called.
pub const WELL_NAMED: Names =
    Names("torch numpy math itertools copy tqdm torch_geometric torchdata operator");
/// What settings are kept in.
pub const SETTINGS: Names = Names("args cfg config opt hparams");
/// Modules whose functions give what they make of their arguments, wherever those live.
const GENERIC: Names = Names("functools operator");

/// Modules of functions of tensors, as programs name them.
pub const TORCH: Names = Names("torch F torch.functional torch.nn.functional nn.functional torch.autograd");
/// NumPy, as programs name it.
pub const NUMPY: Names = Names("np numpy");
/// Modules of arrays, whose `zeros` makes one and whose `save` writes one.
pub const ARRAYS: Names = Names("torch np numpy");
/// Modules that compute with numbers, and hold their types and constants.
pub const NUMERIC: Names = Names("torch np numpy math cmath jnp F");
/// Functions of torch that make one tensor of several.
pub const JOINS: Names = Names("cat concat stack hstack vstack");
/// Functions of NumPy or torch that make one new array of several.
pub const JOINS_ARRAYS: Names = Names("append concatenate concat cat stack vstack hstack array");
/// Functions of `torch` that create a tensor of no data, on the host unless a device is given; those of NumPy are called so too.
pub const FACTORIES: Names = Names(
    "zeros ones empty full rand randn randint randperm arange linspace logspace eye tril_indices triu_indices \
     hann_window hamming_window blackman_window bartlett_window kaiser_window",
);
/// What makes a dict of what it is given by keywords, or by pairs. Of some the keys are attributes too.
pub const DICTS: Names =
    Names("dict OrderedDict Munch EasyDict edict AttrDict AttributeDict DotDict SimpleNamespace");
/// Methods that put something into a container.
pub const FILLS: Names = Names("append extend insert appendleft setdefault add put push");

/// The dtype of what a type of tensors makes, as old programs call it; `None` of other names.
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

/// The function of one of these modules that is called: `cat` of `torch.cat(parts)`.
pub fn function_of(call: &ExprCall, modules: Names) -> Option<&str> {
    modules.has(&nodes::dotted(nodes::receiver(call)?)).then(|| nodes::name(&call.func))
}

/// Whether what the functions of a module give lives on the host.
pub fn gives_host_values(module: &str) -> bool {
    HOST.has(module) || HOST_RESULTS.has(module) || SETTINGS.has(module)
}

/// Whether the functions of a module compute a host value from a host value.
pub fn computes_on_host(module: &str) -> bool {
    HOST.has(module) || GENERIC.has(module)
}

/// Whether a function of torch makes a tensor of data that it is given.
pub fn makes_tensor(function: &str) -> bool {
    matches!(function, "tensor" | "as_tensor" | "asarray" | "from_numpy" | "scalar_tensor")
}
