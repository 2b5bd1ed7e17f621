/** Returns the name of a partition, as `TOPIC/PARTITION`. */
export function partitionName(place: { readonly topic: string; readonly partition: number }): string {
  return `${place.topic}/${place.partition}`
}
