import { conditionOf, type Said } from '../conditions/condition.ts'
import { MessageView } from '../conditions/message-view.ts'
import type { Mapping } from './definition.ts'
import { type Shaped, type Shaper, shaperOf, shaperOfText } from './shaper.ts'

/**
 * The mapping that is for a message. `none`: no mapping is. `failed`: that can't be said, because of the
 * condition of `mapping`.
 */
export type Choice =
  | { readonly kind: 'mapping'; readonly mapping: Mapping }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly mapping: Mapping; readonly detail: string }

/** Returns the first mapping whose condition the message meets. */
export function chooseMapping(mappings: readonly Mapping[], message: MessageView): Choice {
  for (const mapping of mappings) {
    const { condition } = mapping
    if (condition === undefined) return { kind: 'mapping', mapping }
    const said = conditionOf(condition).of(message)
    if (said.kind === 'matches') return { kind: 'mapping', mapping }
    if (said.kind === 'failed') return { ...said, mapping }
  }
  return none
}

/** Returns what the condition of each mapping says about a message. `matches`: it has none, or it is met. */
export function saidOfEach(mappings: readonly Mapping[], message: MessageView): readonly Said[] {
  return mappings.map(({ condition }) =>
    condition === undefined ? { kind: 'matches' } : conditionOf(condition).of(message),
  )
}

const none = { kind: 'none' } as const

/**
 * What is sent of a message. `plain`: the message as it is. `shaped`: what a mapping makes of it. `none`:
 * nothing, because no mapping is for it. `failed`: nothing, and `reason` and `detail` say why.
 */
export type Outgoing =
  | { readonly kind: 'plain' }
  | { readonly kind: 'shaped'; readonly shaped: Shaped; readonly shaper: Shaper }
  | { readonly kind: 'none' }
  | {
      readonly kind: 'failed'
      readonly reason: 'filter_failed' | 'mapping_failed'
      readonly detail: string
    }

const plain = { kind: 'plain' } as const

/**
 * Decides what is sent of a message by the present mappings of its destination. `isOwed`: the message is sent
 * in any case, and as it is if no mapping is for it. These are deletes and the Identifies of audiences.
 */
export function outgoingOf(
  mappings: readonly Mapping[] | undefined,
  { body, isOwed }: { readonly body: Buffer; readonly isOwed: boolean },
): Outgoing {
  if (mappings === undefined) return plain
  const view = new MessageView(body)
  const choice = chooseMapping(mappings, view)
  switch (choice.kind) {
    case 'none':
      return isOwed ? plain : none
    case 'failed':
      return { kind: 'failed', reason: 'filter_failed', detail: choice.detail }
    case 'mapping':
      return shapedBy(shaperOf(choice.mapping), view, body)
  }
}

/**
 * Returns what is sent of a message by the mapping of its first try. `text`: the mapping, as `Shaper.text`
 * was at that time.
 */
export function outgoingAgain(text: string, body: Buffer): Outgoing {
  return shapedBy(shaperOfText(text), new MessageView(body), body)
}

function shapedBy(shaper: Shaper, view: MessageView, body: Buffer): Outgoing {
  const result = shaper.of(view, body)
  if (result.ok) return { kind: 'shaped', shaped: result.shaped, shaper }
  return { kind: 'failed', reason: 'mapping_failed', detail: result.detail }
}
