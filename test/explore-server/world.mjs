// One small world: a question or a standing approval, the people and processes that act on it, and all that was seen of them.
import { current, Scheduler } from './scheduler.mjs'

const SECRET = 'countersign-test-secret-0123456789abcdef'
const LEASE = 30_000
/** Seconds until a question's time is over. */
const TIME = 600
const OWNER = 'ann'

/** What a model is made of, where it does not say otherwise. */
const plain = {
  tool: { needsApproval: true },
  points: ['claim', 'renew', 'complete', 'confirm', 'policy', 'audit', 'run'],
  environment: [],
  actors: [],
}

export class World {
  scheduler = new Scheduler()
  violations = []
  /** What happened, for people. */
  log = []
  /** Per call: where it started, who was told what, which leases are held. */
  starts = []
  told = []
  #server
  #model
  #ledger
  #agents = new Map()
  #leases = new Map()
  #holders = new Map()
  #left
  #mood = undefined
  #bound = 'one'
  /** A lease was lost after the preview was computed for the start. */
  #fenced = false
  #file = 'one'
  #revoked = false
  #jumped = false
  #confirmed = []
  #audited = new Set()
  /** Whose run was read to its end. */
  #ended = new Set()
  #ids = 0
  #turns = []
  /** What the model says to a person's words, whoever's run it is. */
  #answer
  /** How often the model was called. */
  turns = 0
  asked = []
  /** Every request that anybody got, and every preview of edits, by approval id and arguments: what is shown for it. */
  #shown = new Map()
  #requests = new Map()
  #boundTo = new Map()
  history = []

  constructor(server, model) {
    this.#server = server
    this.#model = { ...plain, ...model }
    this.#left = [...this.#model.environment]
    this.#ledger = this.#watched(server.memoryLedger({ id: 'explored', now: () => this.scheduler.now }))
  }

  /** The conversation up to where the people act. */
  async setUp() {
    const { granted, actors } = this.#model
    if (granted) {
      await this.#say([{ calls: [['g', 'send', { n: 0 }]] }, { text: 'ok' }])
      const [first] = this.asked
      const further = this.#model.mandate ? { mandate: 'm' } : { scope: 'session' }
      await this.#carryOut([this.#entry(first, { approved: true, ...further })], {
        who: 'setup',
        factor: true,
      })
      this.starts.length = 0
      this.told.length = 0
      if (!this.#model.isOld) this.asked.length = 0
    }
    if (this.#model.question) {
      this.#turns = [{ calls: this.#model.question }]
      await this.#run('setup', 'p1', { messages: this.#speak('go') }, {})
    }
    this.turns = 0
    for (const actor of actors)
      this.scheduler.spawn(actor.name, actor.process ?? 'p1', () => this.#act(actor))
  }

  actions() {
    const { scheduler } = this
    if (scheduler.unfinished.length === 0) return []
    const own = scheduler.actions()
    const around = this.#left.flatMap((name, index) =>
      this.#left.indexOf(name) === index && this.#canHappen(name)
        ? [{ name: `world: ${name}`, act: () => this.#happen(name, index) }]
        : [],
    )
    if (own.length > 0 || scheduler.nextDue === undefined) return own.length > 0 ? [...own, ...around] : []
    return [{ name: 'world: time passes', act: () => scheduler.tick() }, ...around]
  }

  /** All that decides what comes next and what may still be wrong. */
  async state() {
    const rows = []
    const asked = this.asked.map(({ approval }) => approval.id)
    const ids = this.#model.preview ? [...this.#shown.keys()].map((key) => key.split(' ')[0]) : asked
    for (const approvalId of ids) {
      const entry = await this.#ledger.raw.lookup({ owner: OWNER, threadId: 't', approvalId })
      rows.push(
        JSON.stringify(entry?.state, (name, value) => (name === 'holder' ? this.#holders.get(value) : value)),
      )
    }
    const grants = (await this.#ledger.raw.list(OWNER)).length
    return JSON.stringify([
      this.scheduler.state(),
      rows,
      grants,
      this.#left,
      [this.#mood, this.#bound, this.#file, this.#revoked, this.#jumped, this.turns],
      this.starts,
      this.told,
      this.#confirmed,
      this.#model.preview ? [...this.#shown] : [],
    ])
  }

  /** What has to be so once everybody is done. */
  finish() {
    for (const { name, trace } of this.scheduler.unfinished)
      this.#violate('ends', `${name} never ends (${trace.at(-1)})`)
    for (const { name, error } of this.scheduler.failed)
      this.#violate('ends', `${name} failed: ${error?.stack ?? error}`)
    const { most, turns } = this.#model
    if (most !== undefined && this.starts.length > most)
      this.#violate('once', `${this.starts.length} starts instead of at most ${most}`)
    if (turns !== undefined && this.turns > turns)
      this.#violate('turn', `${this.turns} turns of the model, not ${turns}`)
    const final = this.told.filter(({ code, refused }) => code !== 'interrupted' && !refused)
    for (const one of final) {
      const other = final.find(({ call, said }) => call === one.call && said !== one.said)
      if (other)
        this.#violate('one outcome', `${one.actor} was told ${one.said}, ${other.actor} ${other.said}`)
    }
    if (!this.#jumped && !this.scheduler.isDead('p1') && !this.scheduler.isDead('p2')) {
      const lost = this.told.find(({ code }) => code === 'interrupted')
      if (lost)
        this.#violate('lease is kept', `${lost.actor} was told interrupted although no process stood still`)
    }
  }

  /** What came about, so that random timelines can show that they reach it. */
  reached() {
    const [start] = this.starts
    const requested = this.#requests.size
    return [
      ...(start ? ['started'] : []),
      ...(requested > 1 ? ['requested again'] : []),
      ...(start && requested > 1 ? ['requested again and started'] : []),
      ...(start && start.input !== JSON.stringify(this.asked[0]?.input) ? ['edited and started'] : []),
      ...(this.#fenced ? ['lease lost after the preview'] : []),
      ...(this.scheduler.isDead('p1') ? ['process killed'] : []),
    ]
  }

  // what people and processes do

  async #act(actor) {
    switch (actor.kind) {
      case 'answer':
        if (this.#model.preview) return this.#approve(actor)
        return this.#carryOut(
          [this.#entry(this.asked[0], actor.payload ?? { approved: true })],
          actor.context,
          actor,
        )
      case 'speak':
        this.#answer = actor.turn ?? this.#answer
        return this.#run(
          actor.name,
          actor.process,
          { messages: this.#speak('again') },
          { who: actor.name },
          actor,
        )
      case 'live':
        return this.#live(actor)
      case 'revoke': {
        await this.#agent(actor.process).grants.revoke(OWNER)
        this.#revoked = true
        this.log.push(`${actor.name} revoked`)
        return
      }
      default:
        throw new Error(`What does ${actor.name} do?`)
    }
  }

  #entry(asked, payload, edited) {
    const { id, token, preview } = asked.approval
    const own = preview === undefined ? { token } : { token, sentIn: 'page', preview, ...edited }
    return { interruptId: id, status: 'resolved', payload, metadata: { countersign: own } }
  }

  /** Approves what is shown, and again if approval is requested again. Edits only the first time, with their preview. */
  async #approve(actor) {
    let asked = this.asked[0]
    let payload = actor.payload ?? { approved: true }
    for (let times = 0; asked !== undefined && times < 8; times++) {
      const { editedArgs } = payload
      const edited = editedArgs && (await this.#previewEdits(actor, asked, editedArgs))
      if (editedArgs && edited === undefined) return
      const runId = `run_${actor.name}_${times}`
      const again = await this.#carryOut([this.#entry(asked, payload, edited)], actor.context, {
        ...actor,
        runId,
      })
      asked = again.find(({ approval }) => approval.id !== asked.approval.id)
      if (editedArgs) payload = { approved: true }
    }
  }

  async #previewEdits(
    { name, process = 'p1', context },
    { toolCallId: id, toolName, input: asked, approval },
    input,
  ) {
    const call = { id, name: toolName, arguments: JSON.stringify(asked) }
    const edits = { threadId: 't', approvalId: approval.id, token: approval.token, call, input }
    try {
      const edited = await this.#agent(process).previewEdits(edits, { subject: OWNER, who: name, ...context })
      this.#shown.set(`${approval.id} ${JSON.stringify(input)}`, shownOf(edited.preview))
      return edited
    } catch (error) {
      if (CLOSED.includes(error.code)) return undefined
      throw error
    }
  }

  async #carryOut(resume, context, actor = { name: 'setup', process: 'p1' }) {
    const payload = { ...resume[0].payload, who: context?.who ?? actor.name }
    const given = [{ ...resume[0], payload }]
    if (actor.name === 'setup') this.#turns = [{ text: 'ok' }]
    const messages = actor.late ? actor.late(this.history) : this.history
    return this.#run(
      actor.name,
      actor.process ?? 'p1',
      { messages, resume: given },
      { who: actor.name, ...context },
      actor,
    )
  }

  /** A run that stays open; its answers come from other people than the one who opened it. */
  async #live({ name, process = 'p1', context, answers: people }) {
    const queue = this.#server.answerQueue()
    this.#turns = [{ calls: [['c', 'send', { n: 1 }]] }, { text: 'ok' }]
    const onAsked = (asked) => {
      for (const { who, factor, payload = { approved: true } } of people) {
        this.scheduler.spawn(who, process, () =>
          queue.put(this.#entry(asked, { ...payload, who }), { subject: OWNER, who, factor }),
        )
      }
    }
    await this.#run(
      name,
      process,
      { messages: this.#speak('go') },
      { who: name, ...context },
      { answers: queue, onAsked },
    )
  }

  #speak(text) {
    return [...this.history, { id: `user_${++this.#ids}`, role: 'user', content: text }]
  }

  async #say(turns) {
    this.#turns = turns
    await this.#run('setup', 'p1', { messages: this.#speak('go') }, {})
  }

  async #run(actor, process, given, context, { answers, onAsked, runId = `run_${actor}` } = {}) {
    const { scheduler } = this
    const isSetup = current()?.scheduler !== scheduler
    const input = {
      threadId: 't',
      runId: isSetup ? `setup_${++this.#ids}` : runId,
      protocolVersion: '1.0',
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
      resume: undefined,
      ...given,
    }
    const options = { context: { subject: OWNER, ...context }, ...(answers && { answers }) }
    const events = []
    let run
    try {
      run = this.#agent(process).run(input, options)
    } catch (error) {
      if (error.code !== 'run-open') throw error
      return []
    }
    if (this.#model.points.includes('made')) await scheduler.point('made')
    for await (const event of run) {
      // to be read is to have ended, however slowly the reader then goes on
      if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') this.#ended.add(actor)
      if (this.#model.points.includes('read')) await scheduler.point('read')
      events.push(event)
      this.#hear(actor, event)
      if (event.type === 'CUSTOM' && event.name === 'approval-requested') {
        if (isSetup || onAsked) this.asked.push(event.value)
        onAsked?.(event.value)
      }
    }
    const last = events.at(-1)
    const isRunning = events.some(
      ({ name, value }) => name === 'approval-refused' && value.code === 'call-running',
    )
    const isRefused = last?.code === 'run-open' || (last?.code === 'call-running' && isRunning)
    if (last?.type !== 'RUN_FINISHED' && !(last?.type === 'RUN_ERROR' && isRefused))
      this.#violate('ends', `the run of ${actor} ended with ${JSON.stringify(last)}`)
    if (isSetup) this.history = fold(input.messages, events)
    return events.flatMap(({ name, value }) => (name === 'approval-requested' ? [value] : []))
  }

  #hear(actor, event) {
    if (event.name === 'approval-requested') {
      const { approval, input } = event.value
      this.#shown.set(`${approval.id} ${JSON.stringify(input)}`, shownOf(approval.preview))
      this.#requests.set(approval.id, event.value)
    }
    if (event.type === 'TOOL_CALL_RESULT') {
      const { outcome = 'ok', code } = event.metadata?.countersign ?? {}
      const call = event.toolCallId
      this.told.push({ actor, call, outcome, code, said: `${outcome} ${code} ${event.content}` })
      this.log.push(`${actor} is told ${call}: ${outcome} ${code ?? ''}`)
      const started = this.starts.find((one) => one.call === call)
      if ((outcome === 'denied' || outcome === 'cancelled') && started)
        this.#violate(
          'told',
          `${actor} was told ${outcome} about ${call}, which ${started.actor} has started`,
        )
    }
    if (event.type === 'CUSTOM' && event.name === 'client-tool-ready')
      this.#start(event.value.toolCallId, 'client', event.value.input)
  }

  // the server's parts, with a point at each wait

  #agent(process) {
    const known = this.#agents.get(process)
    if (known) return known
    const { server, model, scheduler } = {
      server: this.#server,
      model: this.#model,
      scheduler: this.scheduler,
    }
    const at = (label) => (model.points.includes(label) ? scheduler.point(label) : undefined)
    const send = {
      name: 'send',
      description: 'Sends',
      input: anything,
      ...model.tool,
      scopes: ['once', 'session'],
      ...(model.mandate && { mandates: () => [{ id: 'm', label: 'All', where: [] }] }),
      ...(model.bind && {
        bind: async () => {
          await at('bind')
          this.#noteGuard('bind', this.#bound)
          return this.#bound
        },
      }),
      ...(model.preview && {
        preview: async ({ n }, { signal }) => {
          // Late in the time of the scheduler. Whoever waited goes on without it.
          const isLate = () => this.#noteGuard('preview', 'late')
          signal.addEventListener('abort', isLate)
          await at('preview')
          signal.removeEventListener('abort', isLate)
          if (signal.aborted) return undefined
          const text = `${this.#file} ${n}`
          scheduler.note(`preview ${text}`)
          this.#noteGuard('preview', text)
          return { kind: 'text', text }
        },
      }),
      ...(model.tool?.location === 'client'
        ? {}
        : {
            execute: async (input, { toolCallId, idempotencyKey, preview }) => {
              this.#start(toolCallId, 'server', input, idempotencyKey, preview)
              await at('run')
              return 'sent'
            },
          }),
    }
    const slow = {
      name: 'slow',
      description: 'Takes its time',
      input: anything,
      execute: async (_, { toolCallId }) => {
        this.#ungated(toolCallId)
        await at('slow')
        return 'slow'
      },
    }
    const made = model.tool?.location === 'client' ? server.toolDefinition(send).client() : server.tool(send)
    const agent = server.createAgent({
      model: {
        id: 'explored/explored',
        stream: (request) => this.#speakAsModel(request),
      },
      tools: [made, server.tool(slow)],
      concurrency: model.concurrency ?? 'unbounded',
      now: () => scheduler.now,
      generateId: () => `message_${++this.#ids}`,
      warn: () => {},
      onError: () => {},
      approvals: {
        secret: SECRET,
        ledger: this.#ledger,
        lease: LEASE,
        wait: LEASE,
        expiresIn: model.time ?? TIME,
        generateId: () => `approval_${++this.#ids}`,
        ...(model.policy && {
          policy: async ({ toolName }) => {
            await at('policy')
            this.#noteGuard('policy', this.#mood)
            return toolName === 'send' ? this.#mood : undefined
          },
        }),
        ...(model.confirm && {
          confirm: async (verdict, { context, request }) => {
            await at('confirm')
            const isTheirs = context.who === verdict.payload.who
            if (!isTheirs)
              this.#violate(
                'confirm',
                `asked about ${verdict.payload.who} with the context of ${context.who}`,
              )
            if (request.approval.id !== verdict.approvalId)
              this.#violate('confirm', 'asked about another request')
            const yes = context.factor === true
            this.#confirmed.push({
              id: verdict.approvalId,
              who: context.who,
              yes,
              ran: JSON.stringify(verdict.arguments),
            })
            return yes
          },
        }),
        onAudit: async ({ event, toolCallId }) => {
          if (event === 'started' || event === 'claimed') await at('audit')
          if (event === 'started') this.#audited.add(`${current()?.name} ${toolCallId}`)
        },
      },
    })
    this.#agents.set(process, agent)
    return agent
  }

  async *#speakAsModel({ messages }) {
    this.turns++
    const answer = messages.at(-1).role === 'user' ? this.#answer : undefined
    const turn = answer ?? this.#turns.shift() ?? { text: 'ok' }
    for (const [id, name, input] of turn.calls ?? [])
      yield { type: 'tool-call', id, name, arguments: JSON.stringify(input) }
    if (turn.text) yield { type: 'text-delta', delta: turn.text }
    yield { type: 'finish', reason: turn.calls ? 'tool_calls' : 'stop' }
  }

  /** The ledger as actors see it: each operation is slow on its way there, and some on their way back. */
  #watched(raw) {
    const { scheduler } = this
    const at = (label) => (this.#model.points.includes(label) ? scheduler.point(label) : undefined)
    const until = () => scheduler.now + LEASE
    const find = async (purpose, ask) => {
      await at(purpose)
      const found = await ask()
      scheduler.note(found === undefined ? 'none' : 'grant')
      await at(`${purpose}d`)
      this.#noteGuard(purpose, found === undefined ? 'none' : 'grant')
      return found
    }
    return {
      ...raw,
      raw,
      issue: async (record) => {
        // The request is bound to what was read for it last.
        this.#boundTo.set(record.approvalId, current()?.guards?.bind?.value ?? 'one')
        return raw.issue(record)
      },
      claim: async (ref, answer, holder, lease) => {
        await at('claim')
        const result = await raw.claim(ref, answer, holder, lease)
        scheduler.note(result.status)
        this.#name(holder)
        if (result.status === 'claimed' && answer.decision === 'approve')
          this.#leases.set(ref.approvalId, { actor: current()?.name, until: until() })
        return result
      },
      reclaim: async (ref, holder, lease) => {
        await at('claim')
        const result = await raw.reclaim(ref, holder, lease)
        scheduler.note(result.status)
        this.#name(holder)
        if (result.status === 'claimed')
          this.#leases.set(ref.approvalId, { actor: current()?.name, until: until() })
        return result
      },
      renew: async (ref, holder, lease) => {
        await at('renew')
        const asked = scheduler.now
        const result = await raw.renew(ref, holder, lease)
        scheduler.note(result.status)
        if (result.status === 'renewed')
          this.#leases.set(ref.approvalId, { actor: current()?.name, until: until() })
        await at('renewed')
        this.#noteGuard('renewed', result.status)
        const { trace, guards } = current() ?? {}
        const isLost = result.status !== 'renewed' || scheduler.now >= asked + LEASE
        if (isLost && guards?.preview && !trace.slice(guards.preview.at).includes('claim'))
          this.#fenced = true
        return result
      },
      complete: async (ref, holder, outcome) => {
        await at('complete')
        return raw.complete(ref, holder, outcome)
      },
      findGrant: (key, purpose) => find(purpose, () => raw.findGrant(key, purpose)),
      findMandate: (call, purpose) => find(purpose, () => raw.findMandate(call, purpose)),
      revoke: async (selector) => {
        await at('revoke')
        const count = await raw.revoke(selector)
        await at('revoked')
        return count
      },
    }
  }

  #name(holder) {
    const name = current()?.name ?? 'setup'
    this.#holders.set(
      holder,
      `${name} ${[...this.#holders.values()].filter((one) => one.startsWith(name)).length}`,
    )
  }

  /** A guard has spoken to this actor; a later wait of another kind makes its word old. */
  #noteGuard(kind, value) {
    const actor = current()
    if (actor === undefined) return
    actor.guards ??= {}
    actor.guards[kind] = { at: actor.trace.length, value }
  }

  // what must hold when a call starts

  #start(call, where, input, key, preview) {
    const actor = current()
    const name = actor?.name ?? 'setup'
    const granted = this.#model.granted === true
    const previous = this.starts.filter((one) => one.call === call)
    this.starts.push({ call, actor: name, input: JSON.stringify(input) })
    this.log.push(`${name} starts ${call}`)
    if (actor === undefined) return
    const { tool } = this.#model
    const isHandedOut = where === 'client'
    if (previous.length > 0 && !tool?.idempotent && !isHandedOut)
      this.#violate('once', `${call} was started by ${previous[0].actor} before`)
    const told = this.told.find((one) => one.call === call && one.code === 'interrupted')
    if (told && !tool?.idempotent)
      this.#violate(
        'told',
        `${told.actor} was told that ${call} may or may not have run, and then it started`,
      )
    const closed = this.told.find(
      (one) => one.call === call && (one.outcome === 'denied' || one.outcome === 'cancelled'),
    )
    if (closed)
      this.#violate('told', `${closed.actor} was told ${closed.outcome} about ${call}, and then it started`)
    if (granted) this.#checkGranted(actor, call)
    else {
      this.#checkApproved(actor, call, input, isHandedOut, key)
      if (this.#model.preview) this.#checkPreviewed(actor, call, input, key, preview)
    }
    if (this.#model.policy)
      this.#checkFresh(actor, call, 'policy', undefined, isHandedOut ? ['complete'] : LATER.policy)
  }

  #checkApproved(actor, call, input, isHandedOut, key) {
    const first = this.asked.find((one) => one.toolCallId === call)
    // With previews, approval may have been requested again.
    const asked = this.#model.preview ? this.#requests.get(key) : first
    if (asked?.toolCallId !== call) return this.#violate('asked', `${call} started, and nobody was asked`)
    const { id, expiresAt } = asked.approval
    if (key !== undefined && key !== id) this.#violate('asked', `${call} started under another key`)
    if (!isHandedOut) {
      const lease = this.#leases.get(id)
      const isHeld = lease?.actor === actor.name && this.scheduler.now < lease.until
      if (!isHeld) this.#violate('lease', `${actor.name} started ${call} without its lease`)
      if (this.scheduler.now >= Date.parse(expiresAt)) this.#violate('time', `${call} started after its time`)
      if (!this.#audited.has(`${actor.name} ${call}`))
        this.#violate('audit', `${call} started before the audit trail has it`)
      if (this.#model.bind) this.#checkFresh(actor, call, 'bind', this.#boundTo.get(id), LATER.bind)
    }
    if (this.#model.confirm) {
      const ran = JSON.stringify(input)
      const proven = this.#confirmed.some((one) => one.id === id && one.yes && one.ran === ran)
      if (!proven)
        this.#violate('confirm', `${call} started and nobody with a second factor said yes to ${ran}`)
    }
  }

  /** What runs is what was shown with the request that it runs under, and nothing has happened since that was looked at last. */
  #checkPreviewed(actor, call, input, id, preview) {
    const shown = this.#shown.get(`${id} ${JSON.stringify(input)}`)
    if (shown === undefined)
      return this.#violate('preview', `${call} started, and its effect was never shown`)
    if (shownOf(preview) !== shown)
      this.#violate('preview', `${call} started with ${shownOf(preview)}, and ${shown} was shown`)
    // A point of that name after it is one of a preview that nobody waits for any more.
    this.#checkFresh(actor, call, 'preview', shown, LATER.preview)
  }

  #checkGranted(actor, call) {
    if (this.#revoked) this.#violate('grant', `${call} started after the session approval was ended`)
    if (actor.guards?.use?.value !== 'grant' || actor.guards.use.at !== actor.trace.length)
      this.#violate('grant', `${call} started, and the ledger was not asked right before it`)
    if (!this.#audited.has(`${actor.name} ${call}`))
      this.#violate('audit', `${call} started before the audit trail has it`)
  }

  /** Between the word of the application (policy, bind, preview) and the start there is only the ledger's. */
  #checkFresh(actor, call, guard, wanted, more) {
    const { at = 0, value } = actor.guards?.[guard] ?? {}
    // Whoever reads the run does so beside it.
    const allowed = ['renew', 'renewed', 'use', 'used', '=renewed', '=grant', 'read', ...more]
    const since = actor.trace.slice(at).filter((label) => !allowed.includes(label.split(' ')[0]))
    if (value !== wanted) this.#violate(guard, `${call} started although ${guard} says ${value}`)
    if (since.length > 0)
      this.#violate(guard, `${call} started after ${since}, and ${guard} was not asked since`)
  }

  #ungated(call) {
    const previous = this.starts.find((one) => one.call === call)
    this.starts.push({ call, actor: current()?.name ?? 'setup' })
    if (previous && !this.#ended.has(previous.actor))
      this.#violate('once', `${call} was started by ${previous.actor}, whose run of the same id is open`)
  }

  #violate(invariant, text) {
    this.violations.push(`${invariant}: ${text}`)
  }

  // what happens around them

  #canHappen(name) {
    const [what, process] = name.split(' ')
    return what !== 'crash' || !this.scheduler.isDead(process)
  }

  #happen(name, index) {
    this.#left.splice(index, 1)
    this.log.push(name)
    const [what, process] = name.split(' ')
    switch (what) {
      case 'stall':
        // a process that stands still: time passes, and no timer of its own has run
        this.#jumped = true
        this.scheduler.now += LEASE + 1
        return
      case 'tick':
        return this.scheduler.tick()
      case 'expire':
        this.#jumped = true
        this.scheduler.now += (this.#model.time ?? TIME) * 1000
        return
      case 'block':
        this.#mood = 'block'
        return
      case 'change':
        this.#bound = 'two'
        return
      case 'write':
        this.#file = process
        return
      case 'crash':
        return this.scheduler.crash(process)
      default:
        throw new Error(`What is ${name}?`)
    }
  }
}

/** What the application is asked between each of its words and the start. */
const LATER = {
  policy: ['preview', '=preview', 'bind'],
  preview: ['preview', 'bind'],
  // Those of a preview that nobody waits for any more.
  bind: ['preview', '=preview'],
}

/** Why there is no preview of edits: somebody else has answered, time is over, what was bound has changed, the policy forbids them. */
const CLOSED = ['approval-conflict', 'approval-expired', 'approval-stale', 'approval-edit-invalid']

/** What a person sees of a preview. One that was computed too late says so. */
const shownOf = (preview) => (preview?.kind === 'none' ? 'late' : preview?.text)

/** A schema that takes everything as it is. */
const anything = {
  '~standard': {
    version: 1,
    vendor: 'explored',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
}

/** What a client keeps of a run. */
function fold(history, events) {
  const messages = structuredClone([...history])
  const assistant = (id) => {
    const known = messages.find((message) => message.id === id)
    if (known) return known
    messages.push({ id, role: 'assistant' })
    return messages.at(-1)
  }
  const find = (id) => messages.flatMap(({ toolCalls = [] }) => toolCalls).findLast((call) => call.id === id)
  for (const event of events) {
    const { type, toolCallId } = event
    if (type === 'TEXT_MESSAGE_CONTENT') {
      const message = assistant(event.messageId)
      message.content = (message.content ?? '') + event.delta
    }
    if (type === 'TOOL_CALL_START') {
      const message = assistant(event.parentMessageId ?? toolCallId)
      const call = { id: toolCallId, type: 'function', function: { name: event.toolCallName, arguments: '' } }
      message.toolCalls = [...(message.toolCalls ?? []), call]
    }
    const call = toolCallId && find(toolCallId)
    if (type === 'TOOL_CALL_ARGS') call.function.arguments += event.delta
    if (call && event.metadata && type !== 'TOOL_CALL_RESULT')
      call.metadata = { ...call.metadata, ...event.metadata }
    if (type === 'TOOL_CALL_RESULT') {
      const { messageId: id, content, metadata } = event
      messages.push({ id, role: 'tool', toolCallId, content, ...(metadata && { metadata }) })
    }
  }
  return messages
}
