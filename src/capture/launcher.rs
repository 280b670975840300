//! Launchers of ranks: which rank this is, and where in a launcher's command a rank's program begins.
//!
//! ```text
//!  sync-report run -o out -- torchrun --nproc-per-node 2 train.py --lr 0.1
//!                            torchrun --nproc-per-node 2 --no-python  sync-report run -o out/rank_%r -- python -u  train.py --lr 0.1
//! ```

use anyhow::{Result, anyhow};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables of a rank and of the number of ranks: of torchrun, srun, Open MPI, MPICH and Intel MPI, PMIx. In the batch script of Slurm a
/// rank is set too, but no step of several tasks.
const RANKS: [(&str, &str); 5] = [
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
];

/// How a launcher is told to start a program as it is, and not through Python.
const OF_PYTHON: [(&str, &str); 3] =
    [("torchrun", "--no-python"), ("accelerate", "--no_python"), ("deepspeed", "--no_python")];
const OF_PROGRAMS: [&str; 5] = ["srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun"];

/// This process' rank and the number of ranks.
pub fn rank() -> Option<(String, u32)> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    RANKS.iter().find_map(|(rank, ranks)| {
        let rank = set(rank).filter(|rank| rank.bytes().all(|byte| byte.is_ascii_digit()))?;
        Some((rank, set(ranks)?.parse().ok()?))
    })
}

/// A launcher's command, parted.
#[derive(Debug, PartialEq, Eq)]
pub struct Launch {
    /// As far as the rank's program, with the word that has the launcher start it as it is.
    pub launcher: Vec<OsString>,
    /// The rank's program.
    pub program: Vec<OsString>,
}

/// Parts a command that begins with a launcher, or with launchers; `None` of any other.
///
/// # Errors
/// One sentence where the rank's program cannot be told from the launcher's options.
pub fn part(command: &[OsString]) -> Result<Option<Launch>> {
    let base =
        |word: &OsString| Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let Some(first) = command.first().map(base) else { return Ok(None) };
    let own = of_module(command);
    if own.is_none() && !is_launcher(&first) {
        return Ok(None);
    }
    // A launcher may start another: `srun … torchrun …`.
    let script = command.iter().position(is_script).unwrap_or(command.len());
    let last = command[..script].iter().rposition(|word| is_launcher(&base(word)));
    let at = last.unwrap_or(0);
    let name = own.filter(|_| last.is_none()).map_or_else(|| base(&command[at]), str::to_owned);
    let unclear = || {
        anyhow!(
            "it is not clear which program {name} starts; put the capture before it: {name} … sync-report run -o NAME -- PROGRAM"
        )
    };
    if let Some((_, flag)) = OF_PYTHON.iter().find(|(launcher, _)| *launcher == name) {
        let given = |word: &OsString| ["--no-python", "--no_python"].iter().any(|flag| word == flag);
        if command[at..script].iter().any(given) || script == command.len() {
            return started(command, at, &base).ok_or_else(unclear).map(Some);
        }
        let mut launcher = command[..script].to_vec();
        // `accelerate launch`, `python -m torch.distributed.run`: an option comes behind the last word of these.
        launcher.push(flag.into());
        let program = [&[python(&command[at]), "-u".into()], &command[script..]].concat();
        return Ok(Some(Launch { launcher, program }));
    }
    started(command, at, &base).ok_or_else(unclear).map(Some)
}

fn is_launcher(name: &str) -> bool {
    OF_PROGRAMS.contains(&name) || OF_PYTHON.iter().any(|(launcher, _)| *launcher == name)
}

fn is_script(word: &OsString) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "py")
}

/// `python -m torch.distributed.run` and `accelerate.commands.launch`, by the names of their commands.
fn of_module(command: &[OsString]) -> Option<&'static str> {
    let at = command.iter().take(3).position(|word| word == "-m")?;
    match command.get(at + 1)?.to_str()? {
        "torch.distributed.run" | "torch.distributed.launch" => Some("torchrun"),
        "accelerate.commands.launch" => Some("accelerate"),
        "deepspeed.launcher.runner" => Some("deepspeed"),
        _ => None,
    }
}

/// A program that is started as it is: from the first word that is Python or a script that can be run.
fn started(command: &[OsString], at: usize, base: &dyn Fn(&OsString) -> String) -> Option<Launch> {
    let is_python = |word: &OsString| {
        let rest = base(word);
        rest.strip_prefix("python")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let is_program = |word: &OsString| is_python(word) || is_script(word) && Path::new(word).is_file();
    let from = command[at + 1..].iter().position(is_program)? + at + 1;
    Some(Launch { launcher: command[..from].to_vec(), program: command[from..].to_vec() })
}

/// The Python beside a launcher, as those are installed.
fn python(launcher: &OsStr) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(launcher)).find(|file| file.is_file());
    let beside = found.and_then(|file| Some(file.parent()?.join("python"))).filter(|python| python.is_file());
    beside.map_or_else(|| "python3".into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(command: &str) -> Option<(String, String)> {
        let words: Vec<OsString> = command.split(' ').map(Into::into).collect();
        let text = |words: Vec<OsString>| words.join(OsStr::new(" ")).to_string_lossy().into_owned();
        part(&words).expect("it is clear").map(|launch| (text(launch.launcher), text(launch.program)))
    }

    #[test]
    fn a_rank_begins_behind_the_launcher() {
        for (command, launcher, program) in [
            (
                "torchrun --nproc-per-node 2 train.py --x 1",
                "torchrun --nproc-per-node 2 --no-python",
                "python3 -u train.py --x 1",
            ),
            (
                "accelerate launch --num_processes 2 a/b.py",
                "accelerate launch --num_processes 2 --no_python",
                "python3 -u a/b.py",
            ),
            ("deepspeed --num_gpus 2 t.py", "deepspeed --num_gpus 2 --no_python", "python3 -u t.py"),
            ("srun -n 2 python3.11 t.py", "srun -n 2", "python3.11 t.py"),
            ("mpirun -np 4 /venv/bin/python -m mod", "mpirun -np 4", "/venv/bin/python -m mod"),
            (
                "srun -N 2 torchrun --nnodes 2 t.py",
                "srun -N 2 torchrun --nnodes 2 --no-python",
                "python3 -u t.py",
            ),
            (
                "torchrun --no-python --nproc-per-node 2 python t.py",
                "torchrun --no-python --nproc-per-node 2",
                "python t.py",
            ),
            (
                "python -m torch.distributed.run --nproc-per-node=2 t.py",
                "python -m torch.distributed.run --nproc-per-node=2 --no-python",
                "python3 -u t.py",
            ),
        ] {
            let (left, right) = parted(command).unwrap_or_else(|| panic!("{command}"));
            let right = right
                .rsplit_once("/python -u ")
                .map_or(right.clone(), |(_, rest)| format!("python3 -u {rest}"));
            assert_eq!((left.as_str(), right.as_str()), (launcher, program), "{command}");
        }
        assert_eq!(parted("python train.py torchrun"), None);
        assert_eq!(parted("./server"), None);
        let unclear = part(&["srun".into(), "-n2".into(), "./job".into()]).expect_err("unclear");
        assert!(unclear.to_string().contains("srun … sync-report run -o NAME -- PROGRAM"), "{unclear}");
    }
}
