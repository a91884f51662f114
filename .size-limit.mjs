/** A renamed export must not pass as one of 8 bytes. */
const modifyEsbuildConfig = (config) => ({ ...config, logOverride: { 'import-is-undefined': 'error' } })

export default [
  {
    name: 'client: ChatClient and fetchServerSentEvents',
    path: 'packages/client/dist/index.js',
    import: '{ ChatClient, fetchServerSentEvents }',
    // The budget is 10 KiB; what stands above it is a debt, and the limit only keeps it from growing.
    limit: '32.7 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'ai-sdk: aiSdk, on top of the client',
    path: 'packages/ai-sdk/dist/index.js',
    import: '{ aiSdk }',
    limit: '10.25 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'langgraph: langGraph, on top of the client',
    path: 'packages/langgraph/dist/index.js',
    import: '{ langGraph }',
    limit: '8.5 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'react: useChat, with the client and fetchServerSentEvents',
    import: {
      'packages/react/dist/index.js': '{ useChat }',
      'packages/client/dist/index.js': '{ ChatClient, fetchServerSentEvents }',
    },
    ignore: ['react'],
    // The budget is 11 KiB, and this is as much above it as the client is above its own.
    limit: '33.6 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'react: useChat, on top of the client',
    path: 'packages/react/dist/index.js',
    import: '{ useChat }',
    ignore: ['react', '@countersign/client'],
    limit: '1 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'solid: useChat, on top of the client',
    path: 'packages/solid/dist/index.js',
    import: '{ useChat }',
    ignore: ['solid-js', '@countersign/client'],
    limit: '1 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'vue: useChat, on top of the client',
    path: 'packages/vue/dist/index.js',
    import: '{ useChat }',
    ignore: ['vue', '@countersign/client'],
    limit: '1 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'svelte: createChat, on top of the client',
    path: 'packages/svelte/dist/index.js',
    import: '{ createChat }',
    ignore: ['svelte', 'svelte/reactivity', 'svelte/store', '@countersign/client'],
    limit: '1 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
  {
    name: 'devtools: the element, on top of the client',
    path: 'packages/devtools/dist/index.js',
    import: '{ defineDevtools }',
    ignore: ['@countersign/client', '@countersign/client/state-patch', '@countersign/core'],
    limit: '10.5 KiB',
    gzip: true,
    modifyEsbuildConfig,
  },
]
