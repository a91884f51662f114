import { type FollowedEnd, followEnd } from '@countersign/example-page/follow-end'

/** Follows the end of a scroller while it grows: `<main {@attach stick.follow}>`. Attached to nothing it follows nothing. */
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
