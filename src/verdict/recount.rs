//! Masks that the backward pass counts again: the backward of `x[mask]` needs the mask's size as the forward pass did.

use super::combine;
use super::site::Site;
use crate::rules::{grade, says};
use crate::sites::native;
use crate::vocabulary::{Kind, PatternId::*, ThreadRole};

/// Judges waits that count a mask in the backward pass like the forward lines that counted masks. The forward
/// lines are the source, to which the trace yields as its rule says.
///
/// Definition: such a wait is on autograd's thread, below the node of an index. The line that it undoes
/// decides, where known; else all lines of the process that count a mask under an index, if they agree.
///
/// ```text
///  main      x[mask] [count][sync]        y[mask] [count][sync]         both host-known
///  autograd                                                  IndexBackward0 [count][sync]   host-known as well
/// ```
/// Cost: one pass over the sites for each such site.
pub fn follow(sites: &mut [Site]) {
    let again: Vec<usize> = (0..sites.len()).filter(|&at| counts(&sites[at]) && undoes(&sites[at])).collect();
    for at in again {
        let own = &sites[at].bundle;
        let forward = sites.iter().filter(|site| {
            let line = own.forward.as_ref().is_none_or(|line| site.bundle.user_frame() == Some(line));
            line && site.bundle.pid == own.pid && counts(site) && !undoes(site)
        });
        let kinds: Vec<Kind> = forward.map(|site| site.verdict.kind).collect();
        let Some(&kind) = kinds.first().filter(|&first| kinds.iter().all(|kind| kind == first)) else {
            continue;
        };
        let said = match kind {
            Kind::HostKnown => {
                let text = "the backward pass counts again the masks of lines whose sizes the host knows";
                says(grade::S20, B30, text)
            }
            Kind::DynamicShape => {
                let text = "the lines of the forward pass, whose masks it counts again, need the size";
                says(grade::S11, None, text)
            }
            _ => continue,
        };
        sites[at].verdict = combine::weigh(sites[at].verdict.clone(), said);
    }
}

fn counts(site: &Site) -> bool {
    let bundle = &site.bundle;
    // Overloads count as well.
    let counted = |operator: &str| operator.starts_with("nonzero");
    bundle.method() == Some("getitem") && native::operators(&bundle.chain).any(counted)
}

/// Whether the site's waits are in the backward pass of an index.
fn undoes(site: &Site) -> bool {
    site.bundle.role == ThreadRole::Autograd && site.bundle.node() == Some("IndexBackward0")
}
