//! The patterns of the catalogue by their ids, as verdicts cite them.

use super::words;

words! {
    /// A pattern that waits, or looks so: `A01`..`H14` of PyTorch, `K01`.. of programs without PyTorch, `L01`.. of places
    /// in libraries, `N01`.. look-alikes that do not wait. The build fails for a pattern without a catalogue entry.
    #[allow(missing_docs)]
    PatternId {
        A01, A02, A03, A04, A05, A06, A07, A08, A09, A10, A11, A12, A13, A14, A15, A16, A17, A18, A19, A20, A21, A22,
        A23, A24, A25, A26, A27, A28, A29, A30, A31, A32, A33, A34, A35, A36, A37, A38, A39, A41, A42, A43, A44,
        A45, A46, A47, A48,
        B01, B02, B03, B04, B05, B06, B07, B08, B09, B10, B11, B12, B13, B14, B15, B16, B17, B18, B19, B20, B21, B22,
        B23, B24, B25, B26, B27, B28, B29, B30, B31, B32, B33, B34, B35,
        C01, C02, C03, C04, C05, C06, C07, C08, C09, C10, C11, C12, C13, C14, C15, C16, C17, C18, C20, C21, C22,
        D01, D02, D03, D04, D05, D06, D07, D08, D09, D10,
        E01, E02, E03, E04, E05, E06, E07, E08, E09, E10, E11, E12, E13, E14, E15, E16,
        F01, F02, F03, F04, F05, F06, F07, F08, F09, F10, F11, F12,
        G01, G02, G03, G04, G05, G06, G07, G08,
        H01, H02, H03, H04, H05, H06, H07, H08, H09, H10, H11, H12, H13, H14,
        K01, K02, K03, K04, K05, K06, K07, K08, K09,
        L01, L02, L03, L04, L05, L06, L07, L08, L09, L10, L11, L12, L13, L14, L15, L16, L17, L18, L19, L20, L21, L22,
        L23, L24, L25, L26, L27, L28, L29, L30, L31, L32, L33, L34, L35, L36, L37, L38, L39, L40, L41, L42, L43, L44,
        L45, L46, L47, L48, L49, L50, L51, L52, L53, L54, L55, L56, L57, L58, L59, L60, L61, L62, L63, L64, L65, L66,
        L67, L68, L69, L70, L71, L72, L73, L74, L75, L76, L77, L78, L79, L80, L81, L82, L83, L84, L85, L86, L87, L88,
        L89, L90, L91, L92, L93, L94, L95, L96, L97, L98, L99, L100, L101, L102, L103, L104, L105, L106, L107, L108,
        L109, L110, L111, L112, L113, L114, L115, L116, L117, L118, L119, L120, L121, L122, L123, L124, L125, L126, L127, L128,
        L129, L130, L131, L132, L133, L134, L135, L136,
        N01, N02, N03, N04, N05, N06, N07,
    }
}

impl PatternId {
    /// Letter of the group: `A` reads a number, `B` a size, `D` tensors; `C` uploads; `F` is an explicit synchronisation;
    /// `L` is a place in a library.
    pub const fn letter(self) -> char {
        self.as_str().as_bytes()[0] as char
    }
}
