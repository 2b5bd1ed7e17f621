import { conditionWords, type Tone } from '../data/words.ts'
import type { Condition } from '../data/types.ts'

export function Badge({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span class="badge" data-tone={tone}>
      {word}
    </span>
  )
}

export function ConditionBadge({ condition }: { condition: Condition }) {
  return <Badge {...conditionWords[condition]} />
}
