/** A layout: the number of units, and the generation of the topics that hold the units' data. */
export type Layout = { readonly partitions: number; readonly generation: number }

/** A change of layout, to more partitions. */
export type Change = { readonly from: Layout; readonly to: Layout }
