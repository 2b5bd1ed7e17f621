import { Link } from './link.tsx'
import { type Params, route } from '../data/route.ts'

type Props = {
  cursor: string | null
  text?: string
  /** Parameters that the next page needs beside the cursor. */
  more?: Params
}

/** Links to the first and the next page of a list. The browser steps back. */
export function Pager({ cursor, text, more = {} }: Props) {
  const { page, params } = route.value
  if (page === undefined) return null
  const given = Object.fromEntries(params)
  const isFirst = !params.has('cursor')
  if (isFirst && cursor === null && text === undefined) return null
  const first = Object.fromEntries(Object.keys(more).map((name) => [name, undefined]))
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="quiet">{text}</span>
      {isFirst ? null : (
        <Link to={page} params={{ ...given, ...first, cursor: undefined }}>
          First page
        </Link>
      )}
      {cursor === null ? null : (
        <Link to={page} params={{ ...given, ...more, cursor }}>
          Next page
        </Link>
      )}
    </nav>
  )
}
