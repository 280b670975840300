//! Words about sites of one rank that need all ranks.

use super::awaited::UNTOLD;
use super::results::advice_on;
use crate::model::Report;
use crate::model::ranks::{Rank, Ranks};
use rustc_hash::FxHashMap;

pub fn tell(report: &mut Report, ranks: &Ranks) {
    let behind: FxHashMap<&str, u32> =
        ranks.sites.iter().filter_map(|over| Some((&*over.key, over.late_rank?))).collect();
    for site in &mut report.sites {
        let path = report.profiles.get(site.process.profile.index()).map(|profile| &profile.path);
        let is_its_own = |rank: &Rank| rank.pid == site.process.pid && Some(&rank.profile) == path;
        let own = || ranks.list.iter().find(|rank| is_its_own(rank)).map(|rank| rank.rank);
        let late = behind.get(&*site.key).filter(|&&rank| Some(rank) != own());
        let late = late.map(|rank| format!("rank {rank}"));
        let words = match &late {
            Some(late) => format!("most of that is for {late}, which comes late"),
            None => "who came late is said over all ranks".to_owned(),
        };
        let texts = site.evidence.iter_mut().filter(|_| ranks.met > 0).map(|evidence| &mut evidence.text);
        texts.for_each(|text| *text = text.replace(UNTOLD, &words));
        if late.is_some() {
            site.fix = advice_on(late, site.class, site.fix.take());
        }
    }
}
