// Byte offsets of the fields of a record batch (magic 2). Source: the Kafka protocol, record batch format.

export const lengthAt = 8
export const afterLength = 12
export const leaderEpochAt = 12
export const magicAt = 16
export const checksumAt = 17
export const attributesAt = 21
export const lastOffsetDeltaAt = 23
export const firstTimestampAt = 27
export const maxTimestampAt = 35
export const producerIdAt = 43
export const countAt = 57
export const recordsAt = 61
