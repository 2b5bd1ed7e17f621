import { afterAll } from 'vitest'
import { deleteOwnTopics } from './kafka.ts'

// This hook runs last. Hooks of a test file run before hooks that were registered earlier, like this one.
afterAll(deleteOwnTopics)
