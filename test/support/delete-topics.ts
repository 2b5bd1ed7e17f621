import { afterAll } from 'vitest'
import { deleteOwnTopics } from './kafka.ts'

// The last of the hooks: those of a test file run before those that were there before it.
afterAll(deleteOwnTopics)
