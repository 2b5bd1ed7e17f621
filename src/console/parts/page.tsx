import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { brand } from '../data/session.ts'

type Props = { title: string; children: ComponentChildren; aside?: ComponentChildren }

/** A page with its heading, which is also the title of the browser's tab. */
export function Page({ title, children, aside }: Props) {
  const name = brand.value
  useEffect(() => {
    document.title = `${title} · ${name}`
  }, [title, name])
  return (
    <main id="main" tabIndex={-1}>
      <div class="heading">
        <h1>{title}</h1>
        {aside === undefined ? null : <div class="actions">{aside}</div>}
      </div>
      {children}
    </main>
  )
}

/** A part of a page. */
export function Part({ title, children, aside }: Props) {
  return (
    <section>
      <div class="heading">
        <h2>{title}</h2>
        {aside === undefined ? null : <div class="actions">{aside}</div>}
      </div>
      {children}
    </section>
  )
}

/** A figure with its name, and a note below. */
export function Figure({
  name,
  value,
  note,
}: {
  name: string
  value: ComponentChildren
  note?: ComponentChildren
}) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="value">{value}</span>
        {note === undefined ? null : <span class="quiet">{note}</span>}
      </dd>
    </div>
  )
}
