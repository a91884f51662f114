import type { ChatActions, ChatClient, ChatClientOptions, Turn } from '@countersign/client'

/** Options of a chat as set by a page or a provider. */
export type PageOptions = Partial<ChatClientOptions>

/**
 * How a page gets its chat. `{ client }`: `useChat({ client })`, without a provider. `{ options }`: `useChat(options)`;
 * with `provider`, below a provider with that client or those options. A page without its own options has
 * `options: {}`, and calls `useChat()`. Its other hooks (`useMessage`, `usePendingApprovals`, ...) use the same chat.
 */
export type PageUse =
  | { readonly client: ChatClient }
  | {
      readonly options: PageOptions
      readonly provider?: { readonly client: ChatClient } | { readonly options: PageOptions } | undefined
    }

export interface PageSettings {
  /** The framework's mode that mounts twice to reveal bugs (React's StrictMode). Frameworks without one ignore it. Default false. */
  readonly strict?: boolean | undefined
  /** How many pages are mounted side by side in one application (below one provider, if any). Default 1. */
  readonly pages?: number | undefined
}

/**
 * One page over one chat, rendered by a framework. Everything the suite looks at is in the document:
 *
 * ```html
 * <main data-status="ready" data-loading="false">                        one for each page
 *   <span data-count>2</span>                                            number of messages, by useChatSelector
 *   <article data-message="m1" data-role="assistant">                    one for each id of useMessageIds: a component with useMessage(id)
 *     <p data-text>Hello</p>                                             one for each text part
 *     <section data-call="c1" data-name="delete_file" data-state="complete" data-approved="true" data-reason="">
 *       <pre data-input>{"path":"a.log"}</pre>                           JSON of `input`, empty without one
 *       <output data-output>"done"</output>                              JSON of `output`, empty without one
 *       <p data-error></p>                                               `error.message`, empty without one
 *     </section>
 *   </article>
 *   <ol data-turns>
 *     <li>complete text</li>                                             one for each of useChat's turns: the types of its parts, or states of calls
 *   </ol>
 *   <form data-approval="a1">                                            one for each part of usePendingApprovals()
 *     <input name="reason"> <input name="edit">                          sent as `reason`, and parsed as `input`, where not empty
 *     <button type="button" name="approve"> <button type="button" name="deny">
 *     <button type="button" name="session">                              where offered: approves with `scope: 'session'`
 *   </form>
 *   <form data-composer>
 *     <input name="text">
 *     <button type="button" name="send"> <button type="button" name="stop">
 *     <button type="button" name="retry"> <button type="button" name="clear">
 *   </form>
 *   <p data-error-message></p>                                           `error.message`, empty or absent without one
 *   <ol data-queue><li>text of a queued message</li></ol>
 * </main>
 * ```
 *
 * The inputs may be uncontrolled and read when a button is pressed; the suite sets them and sends `input` events. `data-approved` and
 * `data-reason` may be absent or empty where there is nothing to say.
 */
export interface BindingHarness {
  /** Whether a component runs once, when it is created (Solid): the suite then expects no further runs. Default false. */
  readonly runsOnce?: boolean | undefined
  /** Mounts the page in a new container in the document. */
  mount(use: PageUse, settings?: PageSettings): Promise<MountedPage>
  /** Renders the same page to HTML, as on a server. */
  renderToString(use: PageUse): Promise<string>
  /** Hydrates that HTML in `container`, in the document. Problems show as `console.error`, `console.warn` or a thrown error. */
  hydrate(container: HTMLElement, use: PageUse): Promise<MountedPage>
  /** Flushes the framework's pending updates. The suite has let the chat itself settle first. */
  settle(): Promise<void>
}

/** A page in the document. */
export interface MountedPage {
  readonly container: HTMLElement
  /** Renders again with another `use` of the same kind (another `threadId`, callback or client). */
  update(use: PageUse): Promise<void>
  /** Unmounts the page and removes its container. */
  unmount(): Promise<void>
  /** How often the component of each message has rendered or run since mounting, by message id. */
  renders(): ReadonlyMap<string, number>
  /** The last result of `useChat` in the first page. */
  chat(): ChatActions
  /** Its current turns. */
  turns(): readonly Turn[]
}
