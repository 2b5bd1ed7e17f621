import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answer, startReceiver } from '../support/receiver.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { type Scene, setScene } from './scene.ts'

/**
 * A scene with a delivery log. The source `shop` has two destinations. `crm` accepts every message, and `bad`
 * refuses every message for good. The condition of the destination of the source `odd` fails for every message.
 */
export type LogScene = Scene & {
  /** The folder of the index. */
  folder: string
  /** The processes that `start` has started, including those that have ended since. */
  running: readonly SluiceProcess[]
  start(role: string): Promise<SluiceProcess>
  /** Kills the processes that still run, stops the receiver and removes the files of the scene. */
  end(): Promise<void>
}

export async function setLogScene(variables: Record<string, string>): Promise<LogScene> {
  const receiver = await startReceiver({ '/hook': answer(200), '/bad': answer(400) })
  const hookOf = (path: string) => [{ id: 'main', url: `${receiver.origin}${path}` }]
  const folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }, { id: 'odd' }],
      destinations: [
        { id: 'crm', sources: ['shop'], hooks: hookOf('/hook') },
        { id: 'bad', sources: ['shop'], hooks: hookOf('/bad') },
        {
          id: 'odd',
          sources: ['odd'],
          filter: { condition: 'int(event) == 1' },
          hooks: hookOf('/hook'),
        },
      ],
    },
    variables: { SLUICE_INDEX_FOLDER: folder, ...variables },
  })
  const running: SluiceProcess[] = []
  return {
    ...scene,
    folder,
    running,
    async start(role) {
      const started = await startSluice(scene.variables, { role })
      running.push(started)
      return started
    },
    async end() {
      await Promise.all(running.map((one) => one.kill()))
      scene.close()
      await receiver.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
