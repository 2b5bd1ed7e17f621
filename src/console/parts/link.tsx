import type { ComponentChildren } from 'preact'
import { type PageName, type Params, urlOf } from '../data/route.ts'

type Props = {
  to: PageName
  params?: Params
  /** Whether the keys j and k step to this link. */
  isRow?: boolean
  isCurrent?: boolean
  class?: string
  children: ComponentChildren
}

/** A link to a page of this console. All links that the console makes are relative, so they stay here. */
export function Link({ to, params = {}, isRow = false, isCurrent = false, children, ...rest }: Props) {
  return (
    <a
      href={urlOf(to, params)}
      class={rest.class}
      {...(isRow ? { 'data-row': '' } : {})}
      {...(isCurrent ? { 'aria-current': 'page' } : {})}
    >
      {children}
    </a>
  )
}

export function DestinationLink({ id, name }: { id: string; name?: string }) {
  return (
    <Link to="destination" params={{ id }} isRow>
      {name ?? id}
    </Link>
  )
}

export function MessageLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return (
    <Link to="message" params={{ id }} isRow {...(children === undefined ? { class: 'mono' } : {})}>
      {children ?? id}
    </Link>
  )
}
