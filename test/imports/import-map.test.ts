import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folders } from '../../scripts/folders.ts'
import { circlesOf, fileEdges, placeOf, readImports } from '../../scripts/import-graph.ts'

const src = resolve(import.meta.dirname, '../../src')
const graph = readImports(src)
const { files, imports } = graph
const local = imports.flatMap(({ file, target }) => (target === undefined ? [] : [{ file, target }]))
const packages = imports.filter(({ target }) => target === undefined)

/** The most files that a folder may have. A newcomer reads no longer list. */
const mostFiles = 30

describe('the import map', () => {
  test('sees the code that it checks', () => {
    expect(files.length).toBeGreaterThan(400)
    expect(local.length).toBeGreaterThan(1_500)
    expect(packages.length).toBeGreaterThan(200)
    expect(local.filter(({ target }) => !files.includes(target) && /\.tsx?$/.test(target))).toEqual([])
  })

  test('every folder of src is on it', () => {
    expect([...new Set(files.map((file) => placeOf(file).folder))].sort()).toEqual(
      Object.keys(folders).sort(),
    )
  })

  test('every sub-folder is on it', () => {
    const found = Object.keys(folders).map((folder) => {
      const rooms = new Set(
        files.map(placeOf).flatMap((place) => (place.folder === folder ? [place.room] : [])),
      )
      return [folder, rooms.size === 1 && rooms.has('.') ? [] : [...rooms].sort()]
    })
    const listed = Object.entries(folders).map(([name, { rooms = {} }]) => [name, Object.keys(rooms).sort()])
    expect(found).toEqual(listed)
  })

  test('folders import only what they may', () => {
    const breaches = local.filter(({ file, target }) => {
      const from = placeOf(file).folder
      const to = placeOf(target).folder
      return from !== to && !folders[from]?.imports.includes(to)
    })
    expect(breaches).toEqual([])
  })

  test('sub-folders import only what they may', () => {
    const breaches = local.filter(({ file, target }) => {
      const from = placeOf(file)
      const to = placeOf(target)
      if (from.folder !== to.folder || from.room === to.room) return false
      return !folders[from.folder]?.rooms?.[from.room]?.imports.includes(to.room)
    })
    expect(breaches).toEqual([])
  })

  test('no folder and no sub-folder may import one that stands below it in the list', () => {
    const upward = Object.values(folders).flatMap(({ rooms = {} }) =>
      Object.entries(rooms).flatMap(([name, { imports: below }], index, all) =>
        below.flatMap((one) =>
          all.slice(0, index).some(([lower]) => lower === one) ? [] : [`${name} → ${one}`],
        ),
      ),
    )
    expect(upward).toEqual([])
    expect(
      circlesOf(new Map(Object.entries(folders).map(([name, folder]) => [name, folder.imports]))),
    ).toEqual([])
  })

  test('an entry of the map that no file uses is not on it', () => {
    const used = new Set(
      local.flatMap(({ file, target }) => {
        const from = placeOf(file)
        const to = placeOf(target)
        return from.folder === to.folder
          ? [`${from.folder}/${from.room} → ${to.room}`]
          : [`${from.folder} → ${to.folder}`]
      }),
    )
    // `roles` and `commands` connect the parts, so they may import every part.
    const unused = Object.entries(folders).flatMap(([name, { imports: others, rooms = {} }]) => [
      ...(name === 'roles' || name === 'commands' ? [] : others.map((one) => `${name} → ${one}`)),
      ...Object.entries(rooms).flatMap(([room, { imports: below }]) =>
        below.map((one) => `${name}/${room} → ${one}`),
      ),
    ])
    expect(unused.filter((entry) => !used.has(entry))).toEqual([])
  })

  test('files import each other in no circle, types included', () => {
    expect(circlesOf(fileEdges(graph))).toEqual([])
  })

  test('a circle is found, whatever leads to it', () => {
    const edges = {
      main: ['a'],
      a: ['b', 'leaf'],
      b: ['c'],
      c: ['a'],
      leaf: [],
      x: ['y', 'a'],
      y: ['x'],
      self: ['self'],
    }
    expect(circlesOf(new Map(Object.entries(edges)))).toEqual([
      ['a', 'b', 'c'],
      ['x', 'y'],
    ])
  })

  test('other folders enter a folder only by its doors', () => {
    const breaches = local.filter(({ file, target }) => {
      const { folder } = placeOf(target)
      const doors = folders[folder]?.doors
      return (
        placeOf(file).folder !== folder &&
        doors !== undefined &&
        !doors.includes(target.slice(folder.length + 1))
      )
    })
    expect(breaches).toEqual([])
    for (const [name, { doors = [] }] of Object.entries(folders))
      for (const door of doors)
        expect(
          local.some(({ file, target }) => target === `${name}/${door}` && placeOf(file).folder !== name),
          `${name}/${door} is used from outside`,
        ).toBe(true)
  })

  test(`no folder has more than ${mostFiles} files`, () => {
    const sizes = Map.groupBy(files, (file) => join(file, '..'))
    expect([...sizes].filter(([, inside]) => inside.length > mostFiles).map(([folder]) => folder)).toEqual([])
  })

  test('adapters are imported by their owners only', () => {
    const breaches = packages.filter(({ file, specifier }) => {
      const owners = Object.keys(folders).filter((name) =>
        folders[name]?.packages?.some((own) => specifier === own || specifier.startsWith(`${own}/`)),
      )
      return owners.length > 0 && !owners.includes(placeOf(file).folder)
    })
    expect(breaches).toEqual([])
  })

  test('only the Kafka client and the topics know kafkajs', () => {
    const importers = new Set(
      packages.filter(({ specifier }) => specifier === 'kafkajs').map(({ file }) => placeOf(file).folder),
    )
    expect([...importers].sort()).toEqual(['kafka', 'topics'])
  })

  test('pure folders import nothing that does I/O', () => {
    const doesIo = /^node:(net|tls|http|https|http2|dns|dgram|fs|child_process|worker_threads|cluster)(\/|$)/
    const breaches = packages.filter(
      ({ file, specifier }) => folders[placeOf(file).folder]?.isPure === true && doesIo.test(specifier),
    )
    expect(breaches).toEqual([])
  })

  test('node:http is had without its WebSocket', () => {
    const breaches = packages.filter(({ specifier, isType }) => specifier === 'node:http' && !isType)
    expect(breaches).toEqual([])
  })

  test('the environment is read in one place', () => {
    const readers = files.filter((file) => readFileSync(join(src, file), 'utf8').includes('process.env'))
    expect(readers.filter((file) => !/^(config|development)\/|^main\.ts$/.test(file))).toEqual([])
  })
})
