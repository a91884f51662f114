declare global {
  namespace App {
    interface Locals {
      /** Who sends the request. */
      user: string
    }
  }
}

export {}
