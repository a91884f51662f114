// The checks that stop the attacks, each with the change that takes it out. `find` is in the file exactly once, or the build fails.

const server = (path) => `server/src/${path}`
const token = server('tokens/token.ts')
const verify = server('answers/verify.ts')
const ledger = server('ledger/create-ledger.ts')
const rows = server('ledger/row-format.ts')
const prepare = server('answers/prepare.ts')
const start = server('answers/run-claimed.ts')
const abandoned = server('answers/open-call.ts')
const input = server('http/run-input.ts')
const strict = 'server/src/encoding/strict-json.ts'
const mandates = server('ledger/mandate-row.ts')
const budget = server('mandates/budget.ts')
const under = server('mandates/under.ts')

const gone = (file, find) => ({ file, find, put: '' })
const never = (file, condition) => ({ file, find: `if (${condition})`, put: 'if (false)' })

export const checks = {
  // the token says exactly what was asked
  length: gone(token, "if (token.length > MAX_TOKEN_LENGTH) return refuse('length')"),
  'base64 tail': {
    file: server('encoding/bytes.ts'),
    find: 'return encodeBase64url(bytes) === text ? bytes : undefined',
    put: 'return bytes',
  },
  kid: {
    file: server('tokens/keys.ts'),
    find: '(await derived()).find((keys) => keys.kid === kid)',
    put: 'kid === undefined ? undefined : (await derived())[0]',
  },
  signature: gone(token, "if (!genuine) return refuse('signature')"),
  ap: gone(token, "if (payload.ap !== expected.approvalId) return refuse('ap')"),
  aud: gone(token, "if (payload.aud !== expected.ledgerId) return refuse('aud')"),
  th: gone(token, "if (payload.th !== expected.threadId) return refuse('th')"),
  oh: gone(
    token,
    "if (payload.oh !== (await hashOwner(keys.owner, expected.owner))) return refuseGenuine('oh', claims)",
  ),
  tc: gone(token, "if (payload.tc !== expected.toolCallId) return refuse('tc')"),
  tn: gone(token, "if (payload.tn !== expected.toolName) return refuse('tn')"),
  ah: gone(token, "if (payload.ah !== (await keyedHash(keys.args, expected.arguments))) return refuse('ah')"),
  iat: gone(token, "if (payload.iat * 1000 > now + CLOCK_SKEW_MS) return refuse('iat')"),
  exp: gone(token, "if (payload.exp * 1000 <= now) return refuseGenuine('exp', claims)"),
  'provider name': {
    file: server('tools/provider-tool.ts'),
    find: 'return providerExecuted ?',
    put: 'return false ?',
  },

  // the answer
  verified: {
    file: verify,
    find: "if (!verified.ok && verified.check !== 'exp') return refuse(verified.code, verified.message)\n  if (!verified.ok) {",
    put: "if (!verified.ok) Object.assign(verified, { claims: { kid: '', approvalId, scopes: ['once', 'session'], edits: true, expiresAt: Infinity } })\n  if (false) {",
  },
  'some token': never(verify, 'token === undefined'),
  'no fallback for a wrong token': {
    file: verify,
    find: 'answer.token === undefined ? getCountersignMetadata(call.metadata).token : answer.token',
    put: 'getCountersignMetadata(call.metadata).token',
  },
  'fallback for answers of this request only': {
    file: verify,
    find: "return via === 'resume' || via === 'live'",
    put: 'return true',
  },
  'a call to answer for': never(verify, 'site === undefined'),
  requireToken: {
    file: server('scope/settings.ts'),
    find: 'requireToken: options.requireToken ?? false',
    put: 'requireToken: false',
  },
  'first verdict': gone(verify, 'if (verdicts.has(answer.approvalId)) continue'),
  'what was sent counts': gone(
    verify,
    'if (sent.has(answer.approvalId) && !isOfRequest(answer.via)) continue',
  ),
  'scope was offered': never(prepare, "decision === 'approve' && !isOffered"),
  confirm: {
    file: server('answers/confirm.ts'),
    find: '(await callHook(scope.leave, () => confirm(answered, { context, request }))) === true',
    put: '(await callHook(scope.leave, () => confirm(answered, { context, request }))) !== undefined',
  },
  'approved is a boolean': {
    file: server('answers/answers.ts'),
    find: "if (!isRecord(payload) || typeof payload.approved !== 'boolean') return undefined",
    put: 'if (!isRecord(payload)) return undefined',
  },
  'scope has a known value': {
    file: server('answers/answers.ts'),
    find: "if (scope !== undefined && scope !== null && scope !== 'once' && scope !== 'session') return undefined",
    put: '',
  },
  'a cancelled card is no yes': {
    file: server('history/history.ts'),
    find: "return state !== 'cancelled' && isRecord(approval) && approval.approved !== undefined",
    put: 'return isRecord(approval) && approval.approved !== undefined',
  },
  'still bound': [
    never(prepare, '!(await isStillBound(scope, verdict, asked.call, gate))'),
    never(start, '!(await isStillBound(scope, verdict, asked, gate))'),
  ],
  'preview as shown': never(
    verify,
    'isApproved && !(await wasShown(scope, answer, claims, claims.previewHash))',
  ),
  'preview unchanged': { file: start, find: 'return hash === approvedPreview ?', put: 'return true ?' },
  'edits with their preview': never(prepare, 'isEdited && approvedPreview === undefined'),
  'proof of edits': {
    file: token,
    find: "return (await globalThis.crypto.subtle.verify('HMAC', keys.args, bytes, text)) ? hash : undefined",
    put: 'return hash',
  },
  policy: [never(prepare, "policy.decision === 'block'"), never(start, "decision === 'block'")],
  'edits allowed': never(prepare, 'forbidden.length > 0'),
  'edits are an object': never(prepare, '!isRecord(edits.value)'),
  schema: { file: server('tools/schema.ts'), find: 'return result.issues === undefined', put: 'return true' },

  'first answer of a part': {
    file: 'ai-sdk/src/server/history.ts',
    find: "if (isAutomatic || typeof interruptId !== 'string' || entries.has(interruptId)) continue",
    put: "if (isAutomatic || typeof interruptId !== 'string') continue",
  },

  // the ledger
  'settled once': [
    {
      file: server('ledger/ledger-row.ts'),
      find: "const current = stateAt(state, lease.now)\n  switch (current.phase) {\n    case 'issued': {",
      put: "const current = { phase: 'issued' }\n  switch (current.phase) {\n    case 'issued': {",
    },
    never(start, '!(await holdsLease(scope, claim))'),
  ],
  'row expiry': [
    never(server('ledger/ledger-row.ts'), "lease.now >= record.expiresAt && answer.decision !== 'expire'"),
    { file: start, find: 'now() >= verdict.claims.expiresAt', put: 'false' },
  ],
  'taken up before': {
    file: prepare,
    find: 'if (isFresh(entry))',
    put: 'if (true)',
  },
  issued: [
    {
      file: ledger,
      find: 'step<ClaimResult>(ref, NOT_ISSUED, decide, (',
      put: "step<ClaimResult>(ref, { status: 'claimed', revision: 0 }, decide, (",
    },
    never(start, '!(await holdsLease(scope, claim))'),
  ],
  "the provider's own approval": never(
    verify,
    'isProviders && providerApprovalOf(site.call) !== ref.approvalId',
  ),
  'one record for one id': {
    file: ledger,
    find: "return { result: { status: same ? 'unchanged' : 'conflict' } }",
    put: "return { result: { status: 'unchanged' }, row: approvalRow(record, { phase: 'issued' }) }",
  },
  'told once': {
    file: server('answers/forward.ts'),
    find: 'if (claim !== undefined) await complete(this.scope, claim, outcome)',
    put: 'if (claim !== undefined) await record(this.scope, claim, handedOut(call))',
  },
  'row owner and thread': [
    {
      file: rows,
      find: "ledgerKey('approval', threadId, approvalId)",
      put: "ledgerKey('approval', approvalId)",
    },
    {
      file: server('ledger/memory-rows.ts'),
      find: 'keys.map((key) => ledgerKey(owner, key))',
      put: 'keys.map((key) => ledgerKey(key))',
    },
  ],
  idempotent: {
    file: server('ledger/ledger-row.ts'),
    find: "if (current.phase !== 'interrupted' || !record.idempotent)",
    put: "if (current.phase !== 'interrupted')",
  },

  // the rest of the history
  'only the model is signed for': [
    {
      file: abandoned,
      find: "import { canAsk, decideGate } from '../gate/gate.js'",
      put: "import { canAsk, decideGate } from '../gate/gate.js'\nimport { requestApproval } from '../gate/ask.js'",
    },
    {
      file: abandoned,
      find: 'if (!ready.ok) return resultOf(site, interruptedOutcome())',
      put: `if (!ready.ok) return closed('the call was not completed')
  if (ready.call.tool.location === 'server') {
    const asking = await requestApproval(scope, ready.call, gateContext(scope, site.call.id, messages))
    return asking.ok ? { kind: 'open', site, request: asking.request, isAnothers: false } : closed('nothing')
  }`,
    },
  ],
  'the same page': {
    file: server('answers/settle.ts'),
    find: 'if (sentIn === verdict.sentIn)',
    put: 'if (true)',
  },
  'client tools that ask are not handed out': {
    file: abandoned,
    find: "if (location === 'client' && gate.kind === 'run' && !site.superseded)",
    put: "if (location === 'client')",
  },
  'asked again as signed': {
    file: abandoned,
    find: 'return close(refusal?.code ?? verified.code, undefined, isKnown)',
    put: "if (!verified.ok) Object.assign(verified, { claims: { kid: '', approvalId, scopes: ['once'], edits: false, expiresAt: Date.now() + 60_000 } })",
  },
  'asked once': never(server('run/resume.ts'), 'this.#asked.has(request.approval.id)'),
  'results of open calls': gone(
    server('answers/records.ts'),
    'if (!wasReported(entry, site.result)) claimed.add(site.result)',
  ),
  'system messages': {
    file: server('scope/settings.ts'),
    find: "options.trustSystemMessages ? () => true : ({ role }) => role !== 'system' && role !== 'developer'",
    put: '() => true',
  },
  'reserved names': {
    file: server('tools/toolkit.ts'),
    find: "return name.startsWith('client.')",
    put: 'return false',
  },
  'shadowed tools': gone(
    server('tools/toolkit.ts'),
    'if (known !== undefined || isReserved(name) || byName.has(name)) continue',
  ),
  'usable call ids': {
    file: server('run/step-calls.ts'),
    find: 'const unique = isId(id) && !this.usedIds.has(id)',
    put: 'const unique = !this.usedIds.has(id)',
  },
  'tools by a map': {
    file: server('tools/toolkit.ts'),
    find: 'get: (name) => byName.get(name)',
    put: 'get: (name) => ({ ...Object.fromEntries(byName) })[name]',
  },
  'forwarded by identity': {
    file: server('history/model-messages.ts'),
    find: 'if (forwarded.has(one)) forwardedAnswer(one).forEach(answer)',
    put: 'forwardedAnswer(one).forEach(answer)',
  },
  'who is asking': {
    file: server('run/run.ts'),
    find: 'owner: context.subject ?? null',
    put: 'owner: [input.forwardedProps, input.state].map((given) => given?.subject).find(Boolean) ?? context.subject ?? null',
  },

  // the question as a client tool
  'askAsTool is off': {
    file: server('run/resume.ts'),
    find: 'scope.settings.approvals.askAsTool ? readProjected(read.sites, scope) : []',
    put: 'readProjected(read.sites, scope)',
  },
  'only the approval tool': {
    file: server('answers/answers.ts'),
    find: 'if (!isApproval(site) || site.result === undefined) return []',
    put: 'if (site.result === undefined) return []',
  },
  'the token in the arguments': {
    file: server('answers/answers.ts'),
    find: "const token = typeof asked?.token === 'string' ? asked.token : ''",
    put: 'const token = asked?.token',
  },
  'the tool it is about': never(
    server('answers/answers.ts'),
    'toolName !== undefined && about !== undefined && toolName !== about.call.function.name',
  ),

  // JSON that readers understand differently
  'duplicate keys': never(strict, 'keys.has(text)'),
  'proto key': never(strict, "text === '__proto__'"),
  'proto key when written': gone(
    server('encoding/canonical.ts'),
    `if (key === '__proto__') return 'the key "__proto__" is refused'`,
  ),
  'lone surrogates': never(strict, '/\\p{Surrogate}/u.test(text)'),
  'lone surrogates when written': {
    file: server('encoding/canonical.ts'),
    find: 'return /\\p{Surrogate}/u.test(text)',
    put: 'return false',
  },
  'unsafe integers': never(strict, 'Number.isInteger(value) && !Number.isSafeInteger(value)'),
  'exact numbers': never(strict, '!isExactJson(text)'),
  'numbers are finite': never(strict, '!Number.isFinite(value)'),
  'argument depth': never(strict, 'jsonDepthExceeds(text, maxDepth)'),
  'argument size': never(strict, 'isLargerThan(text, maxBytes)'),

  // HTTP
  'content type': never(
    server('http/http.ts'),
    "type?.split(';')[0]?.trim().toLowerCase() !== 'application/json'",
  ),
  method: never(server('http/http.ts'), "method !== 'POST'"),
  'announced size': never(server('http/http.ts'), 'Number(length ?? 0) > limits.bodyBytes'),
  size: never(server('http/http.ts'), 'size > limits.bodyBytes'),
  'UTF-8': {
    file: server('http/http.ts'),
    find: "new TextDecoder('utf-8', { fatal: true })",
    put: 'new TextDecoder()',
  },
  'text depth': never(input, 'jsonDepthExceeds(text, depth)'),
  depth: never(input, 'depth > limits.depth'),
  'proto keys': never(input, "Object.hasOwn(value, '__proto__')"),
  frame: gone(
    server('http/client-frame.ts'),
    "if (typeof data !== 'string') throw invalid('A message must be text.')",
  ),
  shape: {
    file: input,
    find: "throw invalid('The body is no AG-UI RunAgentInput.')",
    put: 'return body',
  },
  'numbers of a request': never(input, "typeof value === 'number' && !Number.isFinite(value)"),
  messages: never(input, 'messages.length > limits.messages'),
  calls: never(
    input,
    "message.role === 'assistant' && (message.toolCalls?.length ?? 0) > limits.callsPerMessage",
  ),
  resume: never(input, 'resume.length > limits.answers'),
  ids: gone(input, "for (const id of idsOf(input)) checkId('An id', id, limits)"),
  'ids of a run': {
    file: server('run/agent.ts'),
    find: "import { isId, randomId } from '../encoding/ids.js'",
    put: "import { randomId } from '../encoding/ids.js'\nconst isId = () => true",
  },
  origin: {
    file: server('http/route-rules.ts'),
    find: "if (origin === null || origin === undefined || origins === 'any' || origins.includes(origin)) return",
    put: 'return',
  },

  'event ids': {
    file: server('run-log/run-log.ts'),
    find: 'return /^\\d{1,15}$/.test(digits) ? Number(digits) : undefined',
    put: 'return Number(digits)',
  },

  // whose it is
  'run key': {
    file: server('scope/run-context.ts'),
    find: 'return ledgerKey(holder.kind, holder.id, threadId, runId)',
    put: 'return ledgerKey(threadId, runId)',
  },
  'first live answer': gone(
    server('channel/answer-queue.ts'),
    'if (first !== undefined) return Promise.resolve(first === fingerprint(says(entry)) ? TAKEN : CONFLICT)',
  ),
  'grants of the person': {
    file: server('http/grants.ts'),
    find: 'const subject = holder?.id',
    put: "const subject = query.get('subject') ?? holder?.id",
  },
  'grant owner': grantKey("owner: 'everybody',\n    threadId,\n    toolName: name,"),
  'grant thread': grantKey("owner,\n    threadId: 'every thread',\n    toolName: name,"),
  'grant tool': grantKey("owner,\n    threadId,\n    toolName: 'every tool',"),
  'grant version': {
    file: server('gate/grants.ts'),
    find: 'return grant && counts(grant) ? grant : undefined',
    put: 'return counts && grant',
  },
  'grant scope key': {
    file: server('gate/grants.ts'),
    find: 'scopeKey: scopeKey ? keyText(name, scopeKey(copyOf(input) as never)) : name',
    put: 'scopeKey: name',
  },
  revocation: {
    file: ledger,
    find: 'return { result: 1, row: left.length === 0 ? null : rowOf(left) }',
    put: 'return { result: 1 }',
  },
  'revocation wins': never(ledger, 'isRevoked && !counts'),
  'grant at the start': {
    file: server('run/fresh-calls.ts'),
    find: "(asks ? standing.kind === 'granted' :",
    put: '(asks ? granted :',
  },
  'text for a scope key': {
    file: server('gate/grants.ts'),
    find: 'if (isScopeKey(key)) return scopeKeyText(key)',
    put: 'return key',
  },
  'text for a ledger key': gone(server('ledger/ledger.ts'), "if (typeof part === 'string') "),

  // mandates
  'mandate was offered': {
    file: prepare,
    find: '(one) => one.id === id) : undefined',
    put: '(one) => one.id === id) ?? offered?.offers[0] : offered?.offers[0]',
  },
  'mandate for its decision': {
    file: prepare,
    find: "offer?.decide === 'deny' ? decision === 'deny' : decision === 'approve' && scope === 'once'",
    put: 'true',
  },
  'mandate by its id': never(
    server('answers/answers.ts'),
    "mandate !== undefined && mandate !== null && typeof mandate !== 'string'",
  ),
  'mandate owner': {
    file: ledger,
    find: 'store.update(call.owner, keys, (',
    put: "store.update('ann', keys, (",
  },
  'mandate thread': {
    file: rows,
    find: "ledgerKey('mandates', threadId, toolServer, toolName)",
    put: "ledgerKey('mandates', toolServer, toolName)",
  },
  'mandate tool': {
    file: rows,
    find: "ledgerKey('mandates', threadId, toolServer, toolName)",
    put: "ledgerKey('mandates', threadId, toolServer)",
  },
  constraints: { file: mandates, find: 'meetsAll(input, terms.where)', put: 'true' },
  'uses and expiry': {
    file: server('ledger/grant-row.ts'),
    find: 'now < grant.expiresAt && grant.usesLeft !== 0',
    put: 'true',
  },
  'denials first': never(ledger, 'denial !== undefined'),
  'denial at the start': never(start, "standing.kind === 'denied'"),
  'a new key for each use': {
    file: server('gate/grants.ts'),
    find: "const callKey = randomId('')",
    put: 'const callKey = [scope.runId, call.id].join()',
  },
  'own members': gone(
    server('mandates/constraint.ts'),
    'if (!Object.hasOwn(value, key)) return isPlain(value) ? undefined : other\n',
  ),
  amounts: {
    file: budget,
    find: 'return isAmount(amount) ? amount : undefined',
    put: 'return Math.abs(Number(amount)) % 100',
  },
  units: never(budget, 'unitField !== undefined && valueAt(input, unitField) !== unit'),
  'rest of the budget': {
    file: budget,
    find: 'sum < 0n || sum > unitsOf(total)',
    put: 'sum < 0n',
  },
  'one way to read': never(
    under,
    "whole.length > MAX_LENGTH || !whole.startsWith(root) || UNSEEN.test(whole) || whole.includes('\\\\')",
  ),
  'same root': {
    file: under,
    find: '!whole.startsWith(root) ||',
    put: '',
  },
  'look-alikes': never(under, 'normalized(path) !== path'),
  escapes: {
    file: under,
    find: "path === undefined || path.startsWith('/') || (!isUrl && /%[\\da-f]{2}/i.test(path))",
    put: "path === undefined || path.startsWith('/')",
  },
  'escapes of URLs': never(under, '/%(?!20|[89a-f][\\da-f])/i.test(path)'),
  'plain names': {
    file: under,
    find: "return !/^[\\s.]*(?:;|$)/.test(segment) && !segment.startsWith('..') && !/[. ]$/.test(segment)",
    put: "return segment !== ''",
  },
  'strictly below': {
    file: under,
    find: 'segments.length <= base.segments.length',
    put: 'segments.length < base.segments.length',
  },

  // who answers, when, and what is told of it
  'context of the answer': {
    file: server('run/live-answer.ts'),
    find: "answerOf(entry, 'live', site, context)",
    put: "answerOf(entry, 'live', site, scope.context)",
  },
  'lease at the start': never(start, '!(await holdsLease(scope, claim))'),
  'null for a token': {
    file: verify,
    find: 'answer.token === undefined ? getCountersignMetadata(call.metadata).token : answer.token',
    put: 'answer.token ?? getCountersignMetadata(call.metadata).token',
  },
  "nobody's question": {
    file: abandoned,
    find: 'scope.owner === null && !isNamed ? undefined : known',
    put: 'known',
  },
  'edits of what has no keys': never(prepare, 'allowed !== true && !isRecord(asked)'),
  'epoch of questions': {
    file: verify,
    find: 'verified.claims.issuedAt < approvals.epoch ? BEFORE_EPOCH : verified',
    put: 'verified',
  },
  'epoch of grants': {
    file: server('gate/grants.ts'),
    find: 'grant?.approved !== true || grant.grantedAt < epoch',
    put: 'grant?.approved !== true',
  },
  'results of settled calls': {
    file: server('answers/records.ts'),
    find: 'const { settled, isWhole } = await readSettled(scope, before)',
    put: 'const { settled, isWhole }: Awaited<ReturnType<typeof readSettled>> = { settled: new Map(), isWhole: true }',
  },
  'a turn that is due': never(
    server('run/run.ts'),
    'bringsNothing && !thread?.isCut && isAtRest(resumed.messages)',
  ),

  // what a tool throws
  'our own error asks': {
    file: server('gate/approval-required.ts'),
    find: 'return isMarked(value, mark)',
    put: "return Reflect.get(Object(value), 'code') === 'approval-required'",
  },
  'shown as called': gone(server('run/fresh-calls.ts'), ' && isMaskOf(args, real)'),
  'scopes of the tool': {
    file: server('run/fresh-calls.ts'),
    find: 'termsOf(call.tool).scopes.filter((option) => options.includes(option))',
    put: "options.filter((option) => option !== 'deny')",
  },
  'texts of exceptions': {
    file: server('tools/tool-errors.ts'),
    find: 'const told = isToolError(error) ? messageOf(error)',
    put: 'const told = error instanceof Error ? error.message',
  },

  // what a caller may hold
  'run open': never(server('run/agent.ts'), 'isRunOpen(settings.approvals.ledger, name)'),
  'run open at its start': {
    file: server('run/agent.ts'),
    find: 'opened.start() ? drain.refusal() : runIsOpen(name)',
    put: 'opened.start() ? drain.refusal() : drain.refusal()',
  },
  'open calls': never(input, 'open.length > limits.openCalls'),
  decisions: { file: input, find: 'if (decisions <= limits.answers) return', put: 'return' },
  'errors of a socket': gone(server('http/socket.ts'), "socket.addEventListener('error', () => peer.gone())"),
  'ids of a frame': {
    file: server('http/socket-runs.ts'),
    find: "checkId('The id of an answer', frame.id, this.agent.limits)",
    put: 'String(frame.id)',
  },
  'size of a frame': [
    {
      file: server('node.ts'),
      find: 'maxPayload: DEFAULT_LIMITS.bodyBytes,',
      put: 'maxPayload: 100 * DEFAULT_LIMITS.bodyBytes,',
    },
    never(server('node.ts'), 'takesTooMuch(this, bodyBytes)'),
  ],
  'size of a message': never(server('http/client-frame.ts'), 'data.length > limits.bodyBytes'),
  'who it is comes first': {
    file: server('http/chat.ts'),
    find: `const context = await request.context()
    const { limits } = agent
    const body = await request.readBody({ owner: subjectOf(context)?.id, limits })`,
    put: `const { limits } = agent
    const body = await request.readBody({ owner: undefined, limits })
    const context = await request.context()`,
  },
  'time of a body': {
    file: server('http/http.ts'),
    find: 'limits.arrivalTime)\n    })',
    put: '2 ** 31 - 1)\n    })',
  },
  'bytes that arrive': never(server('http/http.ts'), '!held.grow(Math.max(value.byteLength, CHUNK_BYTES))'),
  'requests that wait': {
    file: server('http/quota.ts'),
    find: 'takeArriving(owner, Math.min(bytesHeldBy(request), most), limits)',
    put: 'takeArriving(owner, 0, limits)',
  },
  'run id of a header': {
    file: 'ai-sdk/src/server/response.ts',
    find: 'encodeURIComponent(runId)',
    put: 'runId',
  },
  'runs of one person': {
    file: server('http/quota.ts'),
    find: 'runs.take(owner, size, limits.runs, limits.runBytes)',
    put: 'runs.take(owner, size, unlimited, unlimited)',
  },
  'early answers': {
    file: server('http/serve-run.ts'),
    find: 'takeEarlyAnswer(ownerOf(holder), size, agent.limits)?.release',
    put: 'size < 0 ? undefined : () => {}',
  },
}

function grantKey(put) {
  return { file: server('gate/grants.ts'), find: 'owner,\n    threadId,\n    toolName: name,', put }
}

/** The edits of a check's mutation. */
export const editsOf = (name) => {
  const check = checks[name]
  if (check === undefined) throw new Error(`There is no check ${name}.`)
  return Array.isArray(check) ? check : [check]
}
