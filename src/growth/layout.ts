/** How many units there are, and which topics hold what belongs to them. */
export type Layout = { readonly partitions: number; readonly generation: number }

/** From one layout to another with more partitions. */
export type Change = { readonly from: Layout; readonly to: Layout }
