export default defineNuxtConfig({
  compatibilityDate: '2026-11-01',
  app: { head: { title: 'Orders', htmlAttrs: { lang: 'en' } } },
})
