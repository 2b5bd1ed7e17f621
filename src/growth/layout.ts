/** The number of units, and the generation of the topics that hold their data. */
export type Layout = { readonly partitions: number; readonly generation: number }

/** A change of layout, to more partitions. */
export type Change = { readonly from: Layout; readonly to: Layout }
