import type { ComponentChildren } from 'preact'
import { isInFile, may } from '../data/session.ts'

type Props = {
  title?: string
  /** What to do while the catalog stays in its file. */
  children?: ComponentChildren
}

/**
 * Says that the catalog is in a file, and how to change what it has, before somebody fills a form that the
 * server would refuse.
 */
export function InFile({
  title = 'The catalog is in a file, so it is not changed here.',
  children = 'Edit the file: running processes use it within seconds.',
}: Props) {
  if (!isInFile.value || !may('admin')) return null
  return (
    <div class="note" role="note">
      <strong>{title}</strong>
      <p>
        {children} To change it here while everything runs, keep it in Kafka:{' '}
        <code>sluice catalog import FILE</code>, then <code>catalog.source=topic</code>{' '}
        (docs/catalog-topic.md).
      </p>
    </div>
  )
}
