import { BaseSequencer } from 'vitest/node'

export default class SlowFirst extends BaseSequencer {}
