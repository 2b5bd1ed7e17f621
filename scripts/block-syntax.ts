import { execFile } from 'node:child_process'
import { parseAst } from 'rolldown/parseAst'
import { parseAllDocuments } from 'yaml'
import { giveInput } from './give-input.ts'
import { blocksOf, type Code, type Page } from './markdown-page.ts'

/**
 * Returns a fault for each block of code of a page that its language can't read: shell, JavaScript, JSON, YAML and
 * Python. A block without a language is read as shell if it begins with a command. Nothing is run.
 */
export async function syntaxFaults({ file, text }: Page): Promise<string[]> {
  const told = await Promise.all(
    blocksOf(text).map(async (block) => {
      const fault = await faultOf(block)
      const language = block.language === '' ? 'shell' : block.language
      return fault === undefined
        ? []
        : [`${file}:${block.line} has a block that is no ${language}: ${fault.trim().split('\n').at(-1)}`]
    }),
  )
  return told.flat()
}

/** Pages leave parts out. `…` stands for what a reader fills in. */
const leftOut = /…|\.\.\.$/m
const commands =
  /^(?:\$ )?(?:[A-Z][A-Z_]*=\S* )*(?:npx|npm|node|sluice|kubectl|helm|curl|docker|export|git|gh|kafka-[a-z-]+\.sh|go|pip|openssl|printf|echo|topics\(\)) ?/

/** Tells whether a block has commands for a shell. */
export function isShell({ language, text }: Pick<Code, 'language' | 'text'>): boolean {
  return ['sh', 'bash'].includes(language) || (language === '' && commands.test(text))
}

async function faultOf({ language, text }: Code): Promise<string | undefined> {
  switch (language) {
    case 'sh':
    case 'bash':
    case '':
      // A block with an output has its commands after `$ `.
      return isShell({ language, text }) && !text.startsWith('$ ') ? shellFault(text) : undefined
    case 'js':
      return leftOut.test(text) ? undefined : thrown(() => parseAst(text))
    case 'json':
      return leftOut.test(text) ? undefined : thrown(() => JSON.parse(text))
    case 'yaml':
      return parseAllDocuments(text).flatMap(({ errors }) => errors)[0]?.message
    case 'python':
      return leftOut.test(text) ? undefined : output('python3', ['-c', readPython], text)
    default:
      return undefined
  }
}

const readPython = 'import ast, sys; ast.parse(sys.stdin.read())'

/** Words such as `<broker>` stand for what a reader fills in. The shell would read them as redirections. */
function shellFault(text: string): Promise<string | undefined> {
  return output('bash', ['-n'], text.replaceAll(/<[a-z-]+>/g, 'WORD'))
}

function thrown(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** Returns what a program says that fails, or nothing if it succeeds. */
function output(command: string, args: readonly string[], input: string): Promise<string | undefined> {
  return new Promise((done) => {
    const child = execFile(command, [...args], (error, _stdout, stderr) =>
      done(error === null ? undefined : stderr),
    )
    giveInput(child, input)
  })
}
