import * as api from '../data/api.ts'
import { useAsk } from '../data/asking.ts'
import { millis } from '../data/format.ts'
import { useLive } from '../data/live.ts'
import { route } from '../data/route.ts'
import { isCustomer, may, seesAnswers, seesContent } from '../data/session.ts'
import type { Delivery, LogRecord, MessageContent, ReplaySelection } from '../data/types.ts'
import { deliveryWords, recordText, recordTone } from '../data/words.ts'
import { type Act, useAct } from '../parts/act.tsx'
import { Badge } from '../parts/badge.tsx'
import { DialogButton } from '../parts/dialog-button.tsx'
import { Exchange } from '../parts/exchange.tsx'
import { Button } from '../parts/form.tsx'
import { DestinationLink, Link } from '../parts/link.tsx'
import { Page, Part } from '../parts/page.tsx'
import { Empty, NotYet, ProblemNote } from '../parts/problem.tsx'
import { SendAgainDialog } from '../parts/send-again-dialog.tsx'
import { Ago, Time } from '../parts/time.tsx'

/** What became of a message: each delivery from its first try to its end. */
export function MessagePage() {
  const id = route.value.params.get('id') ?? ''
  const { asked, again } = useAsk(`message-${id}`, (reading) => api.readMessage(id, reading), 3_000)
  useLive({ message: id }, again)
  const message = asked.value.value
  const content = useAct(() => api.readContent(id), { isReading: true })
  const first = message?.deliveries[0]?.records[0]
  return (
    <Page title={`Message ${id}`}>
      {asked.value.problem?.status === 404 ? (
        <Empty title="The delivery log has no message with this id.">
          It may be older than the log, or still wait in Kafka.{' '}
          <Link to="find">Search by other conditions.</Link>
        </Empty>
      ) : (
        <NotYet asked={asked.value} />
      )}
      {first === undefined ? null : (
        <dl class="facts">
          <Fact name="Type">{first.messageType ?? '—'}</Fact>
          <Fact name="Source">
            {first.source === null || isCustomer.value ? (
              (first.source ?? '—')
            ) : (
              <Link to="source" params={{ id: first.source }}>
                {first.source}
              </Link>
            )}
          </Fact>
          <Fact name="First seen">
            <Time at={first.firstSeenAt} hasMillis />
          </Fact>
          <Fact name="Record in Kafka">
            <span class="mono">
              {first.origin.topic} {first.origin.partition}:{first.origin.offset}
            </span>
          </Fact>
        </dl>
      )}
      {message === undefined ? null : <ContentPart content={content} />}
      {message?.deliveries.map((delivery) => (
        <DeliveryPart key={delivery.destination} id={id} delivery={delivery} content={content.done} />
      ))}
    </Page>
  )
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** What messages contain is about people, so it is shown only when somebody asks, which is written down. */
function ContentPart({ content }: { content: Act<[], MessageContent> }) {
  const { done, problem, isBusy } = content
  if (!seesContent.value) {
    const unseen = `what messages contain${seesAnswers.value ? '' : ', and what endpoints answer'}`
    return (
      <p class="lead quiet">
        {isCustomer.value
          ? `To see ${unseen}, ask whoever gave you the link.`
          : `Your session does not see ${unseen}.`}
      </p>
    )
  }
  if (done === undefined)
    return (
      <p class="lead">
        <ProblemNote problem={problem} />
        <Button onClick={() => void content.run()} isBusy={isBusy}>
          Show request and answer
        </Button>{' '}
        <span class="quiet">This is written to the audit trail.</span>
      </p>
    )
  const notes = done.events.filter(({ note }) => note !== null)
  return (
    <>
      {notes.map(({ origin, body, note }) => (
        <Part key={`${origin.topic} ${origin.partition} ${origin.offset}`} title="As its producer wrote it">
          <p class="quiet">
            {origin.topic} {origin.partition}:{origin.offset}: {note}
          </p>
          {body === null ? null : <pre tabIndex={0}>{body}</pre>}
        </Part>
      ))}
    </>
  )
}

type DeliveryProps = { id: string; delivery: Delivery; content: MessageContent | undefined }

function DeliveryPart({ id, delivery, content }: DeliveryProps) {
  const { destination, state, dueAt, records } = delivery
  return (
    <section>
      <div class="heading">
        <h2>
          {destination === null ? (
            'To no destination'
          ) : (
            <>
              To <DestinationLink id={destination} />
            </>
          )}{' '}
          <Badge {...deliveryWords[state]} />
        </h2>
        {destination === null || !may('operate', 'replay') ? null : (
          <div class="actions">
            <DeliveryActions id={id} destination={destination} delivery={delivery} />
          </div>
        )}
      </div>
      {state === 'waiting' ? (
        <p>
          {dueAt === null ? (
            'It waits for its turn in the queue of its destination.'
          ) : (
            <>
              Next try <Ago at={dueAt} /> (<Time at={dueAt} />)
            </>
          )}
        </p>
      ) : null}
      {content === undefined || destination === null ? null : (
        <Exchange content={content} destination={destination} records={records} />
      )}
      <ol class="timeline">
        {records.map((record, place) => (
          <Step key={place} record={record} />
        ))}
      </ol>
    </section>
  )
}

function Step({ record }: { record: LogRecord }) {
  return (
    <li data-tone={recordTone(record)}>
      <div class="line">
        <Time at={record.at} hasMillis />
        <Badge tone={recordTone(record)} word={recordText(record)} />
        {record.kind === 'attempted' ? (
          <span>
            try {record.attempt}
            {record.hook === null ? '' : ` to ${record.hook}`}
            {record.durationMs === null ? '' : `, ${millis(record.durationMs)}`}
          </span>
        ) : null}
        {record.replay === null ? null : (
          <Link to="replay" params={{ id: record.replay }}>
            replay {record.replay}
          </Link>
        )}
        {record.weight > 1 ? <span class="quiet">stands for {record.weight} deliveries</span> : null}
        {record.dueAt === null ? null : (
          <span class="quiet">
            due <Time at={record.dueAt} />
          </span>
        )}
      </div>
      {record.answer === null ? null : <pre aria-label="Answer">{record.answer}</pre>}
    </li>
  )
}

type ActionProps = { id: string; destination: string; delivery: Delivery }

function DeliveryActions({ id, destination, delivery }: ActionProps) {
  const retry = useAct(() => api.retryNow(destination, { messageId: id }))
  return (
    <>
      <ProblemNote problem={retry.problem} />
      <span role="status">{retry.done === undefined ? '' : 'Workers try it within seconds.'}</span>
      {delivery.state === 'waiting' ? (
        <Button onClick={() => void retry.run()} isBusy={retry.isBusy}>
          Try now
        </Button>
      ) : null}
      <DialogButton label="Send again">
        {(onClose) => (
          <SendAgainDialog selection={selectionOf(id, destination, delivery)} onClose={onClose} />
        )}
      </DialogButton>
    </>
  )
}

/** A dead letter is sent from the dead letters. Any other message is sent from its record in Kafka. */
function selectionOf(messageId: string, destination: string, { state }: Delivery): ReplaySelection {
  return { of: state === 'dead' ? 'dead-letters' : 'events', destination, messageId }
}
