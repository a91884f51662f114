import type { ChatActions, ChatClient, MessagePart, ToolCallPart, UIMessage } from '@countersign/client'
import {
  type UseChat,
  type UseChatOptions,
  useChat,
  useChatSelector,
  useMessage,
  useMessageIds,
  usePendingApprovals,
} from '@countersign/vue'
import { defineComponent, h, type PropType, ref, type VNode } from 'vue'

const required = true

/** The page of the binding suite. Tells what `useChat` returned, and of each time a message is rendered. */
export const ParityPage = defineComponent({
  props: {
    use: { type: Object as PropType<UseChatOptions>, required },
    toldChat: { type: Function as PropType<(chat: UseChat) => void>, required },
    toldRender: { type: Function as PropType<(id: string) => void>, required },
  },
  setup(props) {
    const chat = useChat(() => props.use)
    props.toldChat(chat)
    const { client, turns, status, isLoading, error, queue } = chat
    const within = () => ({ client: client.value })
    const ids = useMessageIds(within)
    const pending = usePendingApprovals(within)
    const count = useChatSelector(({ messages }) => messages.length, undefined, within)
    return () =>
      h('main', { 'data-status': status.value, 'data-loading': String(isLoading.value) }, [
        h('span', { 'data-count': '' }, String(count.value)),
        ids.value.map((id) =>
          h(Message, { key: id, id, client: client.value, toldRender: props.toldRender }),
        ),
        h(
          'ol',
          { 'data-turns': '' },
          turns.value.map(({ id, parts }) =>
            h(
              'li',
              { key: id },
              parts.map((part) => (part.type === 'tool-call' ? part.state : part.type)).join(' '),
            ),
          ),
        ),
        pending.value.map((call) =>
          h(Approval, { key: call.id, call, answer: chat.addToolApprovalResponse }),
        ),
        h(Composer, { act: chat }),
        h('p', { 'data-error-message': '' }, error.value?.message ?? ''),
        h(
          'ol',
          { 'data-queue': '' },
          queue.value.map(({ id, message }) => h('li', { key: id }, textOf(message))),
        ),
      ])
  },
})

const Message = defineComponent({
  props: {
    id: { type: String, required },
    client: { type: Object as PropType<ChatClient>, required },
    toldRender: { type: Function as PropType<(id: string) => void>, required },
  },
  setup(props) {
    const message = useMessage(
      () => props.id,
      () => ({ client: props.client }),
    )
    return () => {
      props.toldRender(props.id)
      const { role, parts = [] } = message.value ?? {}
      return h('article', { 'data-message': props.id, 'data-role': role }, parts.map(renderPart))
    }
  },
})

function renderPart(part: MessagePart): VNode | undefined {
  if (part.type === 'text') return h('p', { 'data-text': '' }, part.text)
  return part.type === 'tool-call' ? renderCall(part) : undefined
}

function renderCall({ id, name, state, approval, input, output, error }: ToolCallPart): VNode {
  const attributes = {
    'data-call': id,
    'data-name': name,
    'data-state': state,
    'data-approved': String(approval?.approved ?? ''),
    'data-reason': approval?.reason ?? '',
  }
  return h('section', attributes, [
    h('pre', { 'data-input': '' }, JSON.stringify(input)),
    h('output', { 'data-output': '' }, JSON.stringify(output)),
    h('p', { 'data-error': '' }, error?.message ?? ''),
  ])
}

const Approval = defineComponent({
  props: {
    call: { type: Object as PropType<ToolCallPart>, required },
    answer: { type: Function as PropType<ChatActions['addToolApprovalResponse']>, required },
  },
  setup(props) {
    const [reason, edit] = [ref(''), ref('')]
    const answer = (approved: boolean, scope?: 'session') =>
      props.answer({
        id: props.call.approval?.id ?? '',
        approved,
        ...(reason.value && { reason: reason.value }),
        ...(edit.value && { input: JSON.parse(edit.value) }),
        ...(scope && { scope }),
      })
    return () =>
      h('form', { 'data-approval': props.call.approval?.id }, [
        field('reason', reason),
        field('edit', edit),
        button('approve', () => answer(true)),
        button('deny', () => answer(false)),
        props.call.approval?.options.includes('session') && button('session', () => answer(true, 'session')),
      ])
  },
})

const Composer = defineComponent({
  props: { act: { type: Object as PropType<ChatActions>, required } },
  setup({ act }) {
    const text = ref('')
    return () =>
      h('form', { 'data-composer': '' }, [
        field('text', text),
        button('send', () => act.sendMessage(text.value)),
        button('stop', act.stop),
        button('retry', act.retry),
        button('clear', act.clear),
      ])
  },
})

function field(name: string, value: { value: string }): VNode {
  const onInput = ({ target }: Event) => {
    if (target instanceof HTMLInputElement) value.value = target.value
  }
  return h('input', { name, value: value.value, onInput })
}

function button(name: string, act: () => unknown): VNode {
  return h('button', { type: 'button', name, onClick: () => void act() }, name)
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
