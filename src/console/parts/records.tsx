import { millis } from '../data/format.ts'
import { seesAnswers } from '../data/session.ts'
import type { LogRecord } from '../data/types.ts'
import { recordText, recordTone } from '../data/words.ts'
import { Badge } from './badge.tsx'
import { DestinationLink, MessageLink } from './link.tsx'
import { Time } from './time.tsx'

type Props = { records: readonly LogRecord[]; hasDestination?: boolean }

/** Records of the delivery log, one a row. */
export function Records({ records, hasDestination = false }: Props) {
  return (
    <div class="scroll" role="region" aria-label="Records of the delivery log" tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">What</th>
            <th scope="col">Message</th>
            {hasDestination ? <th scope="col">Destination</th> : null}
            <th scope="col" class="number">
              Try
            </th>
            <th scope="col" class="number">
              Took
            </th>
            <th scope="col">Source</th>
            {seesAnswers.value ? <th scope="col">Answer</th> : null}
          </tr>
        </thead>
        <tbody>
          {records.map((record, place) => (
            <tr key={`${record.at} ${record.messageId ?? ''} ${place}`}>
              <td class="when">
                <Time at={record.at} hasMillis />
              </td>
              <td>
                <Badge tone={recordTone(record)} word={recordText(record)} />
              </td>
              <td class="cut">{record.messageId === null ? '—' : <MessageLink id={record.messageId} />}</td>
              {hasDestination ? (
                <td class="cut" data-name="to">
                  {record.destination === null ? '—' : <DestinationLink id={record.destination} />}
                </td>
              ) : null}
              <td class="number" data-name="try">
                {record.attempt === 0 ? '' : record.attempt}
              </td>
              <td class="number" data-name="took">
                {record.durationMs === null ? '' : millis(record.durationMs)}
              </td>
              <td class="cut" data-name="from">
                {record.source ?? ''}
              </td>
              {seesAnswers.value ? (
                <td class="answer mono cut" title={record.answer ?? ''}>
                  {record.answer ?? ''}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
