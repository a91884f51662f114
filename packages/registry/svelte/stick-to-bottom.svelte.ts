import { type FollowedEnd, followEnd } from '@countersign/client/ui'
import { getChat } from '@countersign/svelte'

/** Keeps a growing scroller scrolled to its end: `<main {@attach stick.follow}>`. Does nothing until attached. Create it below `setChat`. */
export class StickToBottom {
  isAtBottom = $state(true)
  readonly #chat = getChat()
  #followed: FollowedEnd | undefined

  readonly follow = (scroller: HTMLElement) => {
    const followed = followEnd(scroller, this.#chat.client, (now) => {
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
