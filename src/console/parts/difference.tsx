import { valueText } from '../data/format.ts'
import type { FieldChange } from '../data/types.ts'

/** The fields that differ, with their values before and after. */
export function Difference({ fields }: { fields: readonly FieldChange[] }) {
  if (fields.length === 0) return <p class="quiet">No field differs.</p>
  return (
    <div class="scroll" role="region" aria-label="Fields that differ" tabIndex={0}>
      <table class="difference cards">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(({ field, before, after }) => (
            <tr key={field}>
              <th scope="row" class="mono">
                {field}
              </th>
              <td class="mono" data-name="before">
                {isNothing(before) ? <span class="quiet">not there</span> : <del>{valueText(before)}</del>}
              </td>
              <td class="mono" data-name="after">
                {isNothing(after) ? <span class="quiet">not there</span> : <ins>{valueText(after)}</ins>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined
}
