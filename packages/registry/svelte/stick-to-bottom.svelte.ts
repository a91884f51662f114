import { type FollowedEnd, followEnd } from '@countersign/client/ui'

/** Keeps a growing scroller scrolled to its end: `<main {@attach stick.follow}>`. Does nothing until attached. */
export class StickToBottom {
  isAtBottom = $state(true)
  #followed: FollowedEnd | undefined

  readonly follow = (scroller: HTMLElement) => {
    const followed = followEnd(scroller, (now) => {
      this.isAtBottom = now
    })
    this.#followed = followed
    return () => {
      followed.stop()
      this.isAtBottom = true
    }
  }

  readonly toBottom = () => this.#followed?.toBottom()
}
